/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul's host side passes to its device side. */
#ifndef TRINE_HIP_MATMUL_H
#define TRINE_HIP_MATMUL_H

#include "backends/simt/matmul/scales.h"
#include "backends/hip/tile/operand.h"
#include "backends/hip/tile/order.h"

typedef struct matmul_params {
    tile_operand a, b;
    simt_rows c, d;              /* c's data NULL: absent */
    const void *bias;            /* likewise */
    int64_t m, n, k;             /* of a matrix */
    int64_t down, right, blocks; /* tiles of d, and of all of the batch */
    tile_order order;
    float alpha, beta;              /* never -0 */
    int32_t activation;             /* TRINE_ACTIVATION_* */
    bool c_spread;                  /* c is broadcast along its rows: its column stride is 0 */
    bool c_wide, d_wide, bias_wide; /* rows aligned to 16 bytes */
    simt_scales row_scales, column_scales;
} matmul_params;

#endif
