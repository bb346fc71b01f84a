/* SPDX-License-Identifier: Apache-2.0 */
/* What reduce_sum's host side passes to its device side. */
#ifndef TRINE_SIMT_REDUCE_SUM_H
#define TRINE_SIMT_REDUCE_SUM_H

#include "backends/simt/core/ahead.h"
#include "backends/simt/core/columns.h"

/* elements of a row that one group sums, at most; of a long one, where rows are few */
enum { REDUCE_PIECE = 65536, REDUCE_SMALL = 16384 };

typedef struct reduce_rows_params {
    simt_rows x, out; /* out: rows, or where a row has several pieces, pieces times rows of f32 */
    int64_t rows, n, piece, pieces;
    simt_ahead ahead; /* of x */
} reduce_rows_params;

typedef struct reduce_columns_params {
    simt_rows x;
    int64_t step; /* between the elements of a row */
    columns_params columns;
    float *row_partial; /* sums of each row's part in a tile of columns, tiles times rows; NULL: not asked for */
    simt_ahead ahead;   /* of x */
} reduce_columns_params;

/* Sums of partial sums: of columns, or of parts of rows, or of both. */
typedef struct reduce_finish_params {
    columns_params sums[2];
    int64_t blocks; /* thread blocks of the first */
} reduce_finish_params;

/* With the same bits on every device: the sums of rows, or of columns. */
typedef struct reduce_same_params {
    const void *x;
    void *out;
    int64_t rows, n, row, step; /* strides */
    bool wide;                  /* out is f32, else of x's type */
} reduce_same_params;

#endif
