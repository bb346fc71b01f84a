/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table in the order of an index: what the host side of embedding and of gather_rows passes to its device
 * side. */
#ifndef TRINE_SIMT_GATHER_H
#define TRINE_SIMT_GATHER_H

#include "backends/simt/core/params.h"

enum { GATHER_UNITS = 2 }; /* of a thread, as many blocks of them apart */

/* Strides and the length of a row are in units of as many bytes as alignment allows. */
typedef struct gather_params {
    simt_rows table, y;
    const void *ids;
    int64_t v, units;
    simt_divisor row_units;
    uint32_t missing; /* the bits of a row whose id is out of range, 0 or all */
    bool pad;         /* a row whose id is -1 is 0 */
    bool long_ids;
} gather_params;

#endif
