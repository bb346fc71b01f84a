/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of all_to_all_v passes to its device side. */
#ifndef TRINE_SIMT_ALL_TO_ALL_V_H
#define TRINE_SIMT_ALL_TO_ALL_V_H

#include "exchange.h"

typedef struct vary_params {
    exchange_params exchange; /* x and y by rows, n: elements of a row */
    const void *counts;       /* of all ranks, one behind the other */
    void *received;           /* NULL: not asked for */
    int64_t m, capacity;
    bool wide; /* counts are i64 */
} vary_params;

#endif
