/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of adamw_sharded passes to its device side. */
#ifndef TRINE_SIMT_ADAMW_SHARDED_H
#define TRINE_SIMT_ADAMW_SHARDED_H

#include "exchange.h"

typedef struct sharded_params {
    exchange_params exchange; /* n: elements of the longest part */
    int64_t all, part;        /* elements of all parts; of one, but the last ones */
    const float *scale;       /* of the sums; NULL: 1 */
} sharded_params;

#endif
