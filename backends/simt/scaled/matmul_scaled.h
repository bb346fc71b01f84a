/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul_scaled's host side passes to its device side. */
#ifndef TRINE_SIMT_MATMUL_SCALED_H
#define TRINE_SIMT_MATMUL_SCALED_H

#include "backends/simt/core/params.h"

/* Rows, columns and depth of a tile. Rows of a that a team has at a time which has a row of b; rows of a at most for
 * teams, threads of one, and elements of a thread. */
enum { SCALED_ROWS = 64, SCALED_COLUMNS = 128, SCALED_DEPTH = 32 };
enum { SCALED_FEW = 8, SCALED_SIDE = 4, SCALED_TEAM = 32, SCALED_RUN = 16 };

typedef enum scaled_kind { SCALED_IS_E4M3, SCALED_IS_E5M2, SCALED_IS_BYTE, SCALED_IS_E2M1, SCALED_IS_HALF } scaled_kind;
typedef enum scaled_type { SCALED_AS_F32, SCALED_AS_BF16, SCALED_AS_F16, SCALED_AS_E8M0, SCALED_AS_E4M3 } scaled_type;

typedef struct scaled_side {
    const uint8_t *data;
    const void *scale;       /* NULL: absent */
    int64_t row, scale_row;  /* strides */
    int64_t rows, row_block; /* rows of a block */
    simt_divisor block;      /* elements of k of a block */
    uint32_t flip;           /* what turns a word's signed codes into unsigned ones */
    int32_t none;            /* the unsigned code that stands for 0 */
    scaled_kind kind;
    scaled_type scale_type;
    bool aligned; /* runs of 16 elements, in memory */
} scaled_side;

typedef struct scaled_params {
    scaled_side a, b;
    void *d;
    const void *bias;    /* NULL: absent */
    int64_t d_row, down; /* down: tiles along m, or groups of rows */
    int32_t k, activation;
    float alpha;
    scaled_type out_type, bias_type;
} scaled_params;

#endif
