/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of matmul_pack passes to its device side. */
#ifndef TRINE_SIMT_MATMUL_PACK_H
#define TRINE_SIMT_MATMUL_PACK_H

#include "backends/simt/core/params.h"

/* Strides in elements. */
typedef struct matmul_pack_params {
    const void *b;
    void *packed;
    simt_divisor lines, groups; /* of all k; of 16 columns, in a matrix */
    int64_t b_batch, b_along, b_lane, packed_batch, packed_group, packed_block;
    int64_t n, k, words; /* a word: what a column has in a line */
} matmul_pack_params;

#endif
