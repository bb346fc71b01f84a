/* SPDX-License-Identifier: Apache-2.0 */
/* Products of this rank by the library's own matmul, in pieces straight into its half, and sums of all ranks' pieces:
 * a rank multiplies its next piece while others still read the last one. */
#ifndef TRINE_CPU_COMM_PRODUCTS_H
#define TRINE_CPU_COMM_PRODUCTS_H

#include <trine/matmul.h>
#include <trine/ops.h>

#include "backends/cpu/core/vec.h"
#include "copy.h"

enum { PRODUCT_ALIGNMENT = 256 };

/* A tensor of this rank: of a call of all ranks it has the dimension `ranks` in front. */
static inline trine_tensor own_tensor(const trine_call *call, int place) {
    trine_tensor own = call->tensor[place];
    if (call->comm != NULL || own.rank == 0) return own;
    own.rank--;
    memmove(own.shape, own.shape + 1, sizeof own.shape - sizeof own.shape[0]);
    memmove(own.stride, own.stride + 1, sizeof own.stride - sizeof own.stride[0]);
    return own;
}

/* Elements [first, first + count) along a dimension. */
static inline trine_tensor tensor_part(trine_tensor t, int dimension, int64_t first, int64_t count) {
    const int64_t at = first * t.stride[dimension] * (int64_t)trine_dtype_size(t.dtype);
    if (t.data != NULL && count > 0) t.data = (char *)t.data + at;
    t.shape[dimension] = count;
    return t;
}

/* Matrices one below the other are one. */
static inline bool is_one_below(const trine_tensor *t) {
    return t->rank == 3 && t->stride[0] == t->shape[1] * t->stride[1];
}
static inline void put_below(trine_tensor *t) {
    t->rank = 2;
    t->shape[0] *= t->shape[1], t->shape[1] = t->shape[2];
    t->stride[0] = t->stride[1], t->stride[1] = t->stride[2];
}

/* d = a b, or the bytes of workspace that this needs, of the largest so far. */
static inline trine_status multiply(const trine_call *call, trine_tensor a, trine_tensor b, trine_tensor d, size_t at,
                                    size_t *bytes, bool run) {
    if (is_one_below(&a) && is_one_below(&d)) put_below(&a), put_below(&d);
    const trine_matmul_args args = { .struct_size = sizeof args, .a = &a, .b = &b, .d = &d };
    size_t need;
    if (run) return call->host->nested_run(call, TRINE_OP_MATMUL, &args, (char *)call->workspace + at, *bytes);
    const trine_status status = call->host->nested_workspace(call, TRINE_OP_MATMUL, &args, &need);
    if (status == TRINE_OK && need > *bytes) *bytes = need;
    return status;
}

/* ------------------------------------------------------------------------------------------------------------ sums */

/* A piece of d, and the ranks' products of it one row after another. */
typedef struct product_sums {
    trine_dtype T;
    int ranks;
    int64_t rows, columns, step; /* step: bytes from a row of d to the next */
    const char *from[TRINE_MAX_RANKS];
    char *to;
} product_sums;

INLINE void product_sum_row(const product_sums *s, int64_t row, trine_dtype T) {
    char *to = s->to + row * s->step;
    const int64_t first = row * s->columns;
    for (int64_t j = 0; j < s->columns; j += VL) {
        const int count = s->columns - j < VL ? (int)(s->columns - j) : VL;
        vf all = { 0 };
        for (int r = 0; r < s->ranks; r++) {
            const vf x = count == VL ? vload(s->from[r], TRINE_F32, first + j)
                                     : vloadn(s->from[r], TRINE_F32, first + j, count, 0);
            all = r == 0 ? x : all + x;
        }
        if (count == VL)
            vstore(to, T, j, all);
        else
            vstoren(to, T, j, count, all);
    }
}

static void product_sum_rows(const void *context, int64_t first, int64_t last, int thread) {
    const product_sums *s = context;
    (void)thread;
    for (int64_t row = first; row < last; row++) switch (s->T) {
        case TRINE_BF16: product_sum_row(s, row, TRINE_BF16); break;
        case TRINE_F16: product_sum_row(s, row, TRINE_F16); break;
        default: product_sum_row(s, row, TRINE_F32);
        }
}

static inline void sum_products(const trine_call *call, const product_sums *s) {
    const int64_t bytes = (s->ranks + 1) * s->rows * s->columns * 4;
    cpu_shares(call, cpu_team(call, s->rows, bytes), s->rows, product_sum_rows, s);
}

/* ---------------------------------------------------------------------------------------------------------- pieces */

/* A call whose ranks' products are added up: `parts` of m rows each, of which this rank sums one. A piece is `rows` of
 * each part by `columns`, which have room in a half side by side. */
typedef struct summed_products {
    const trine_call *call;
    trine_tensor a, b, d; /* a: parts m k, or m k of one part */
    int64_t parts, m, n, rows, columns;
} summed_products;

/* Squares read the least; beside them whole rows. */
static inline void cut_pieces(summed_products *s) {
    const int64_t room = trine_cpu_group_bytes(s->call) / 4 / s->parts;
    int64_t side = 1;
    while (4 * side * side <= room) side *= 2;
    s->rows = s->m < side ? s->m : side;
    s->columns = s->rows > 0 ? room / s->rows : 0;
    if (s->columns > VL) s->columns -= s->columns % VL;
    if (s->columns >= s->n) {
        s->columns = s->n;
        s->rows = s->n > 0 && room / s->n < s->m ? room / s->n : s->m;
    }
}

/* `half`: NULL where nothing runs. */
static inline trine_status multiply_piece(const summed_products *s, int64_t row, int64_t rows, int64_t column,
                                          int64_t columns, char *half, size_t *bytes) {
    const int first = s->a.rank - 2;
    trine_tensor products = trine_tensor_2d(half, TRINE_F32, rows, columns);
    if (first > 0)
        products = (trine_tensor){ .data = half,
                                   .dtype = TRINE_F32,
                                   .rank = 3,
                                   .shape = { s->parts, rows, columns },
                                   .stride = { rows * columns, columns, 1 } };
    return multiply(s->call, tensor_part(s->a, first, row, rows), tensor_part(s->b, 1, column, columns), products, 0,
                    bytes, half != NULL);
}

/* What the products need: pieces have two heights, and two widths. */
static inline trine_status summed_products_plan(const summed_products *s, size_t *bytes_out) {
    *bytes_out = 0;
    for (int i = 0; i < 4 && s->rows > 0 && s->columns > 0; i++) {
        const int64_t rows = i & 1 ? s->m % s->rows : s->rows, columns = i & 2 ? s->n % s->columns : s->columns;
        if (rows == 0 || columns == 0) continue;
        const trine_status status = multiply_piece(s, 0, rows, 0, columns, NULL, bytes_out);
        if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
}

/* One piece: multiplied, posted, added up. */
static inline trine_status sum_piece(const summed_products *s, int64_t row, int64_t column, int part) {
    const trine_call *call = s->call;
    const int64_t rows = s->m - row < s->rows ? s->m - row : s->rows,
                  columns = s->n - column < s->columns ? s->n - column : s->columns;
    const trine_tensor d = tensor_part(tensor_part(s->d, 0, row, rows), 1, column, columns);
    size_t bytes = call->workspace_size;
    char *half;
    trine_status status = trine_cpu_group_ready(call, &half);
    if (status == TRINE_OK && rows > 0 && columns > 0) {
        status = multiply_piece(s, row, rows, column, columns, half, &bytes);
        if (status != TRINE_OK) trine_cpu_group_abort(call->comm); /* the others wait for the piece */
    }
    if (status == TRINE_OK) status = trine_cpu_group_post(call, row == 0 && column == 0, 1);
    if (status != TRINE_OK) return status;
    product_sums sums = { .T = d.dtype,
                          .ranks = (int)call->dim[call->plan->ranks],
                          .rows = rows,
                          .columns = columns,
                          .step = d.stride[0] * (int64_t)trine_dtype_size(d.dtype),
                          .to = d.data };
    for (int r = 0; r < sums.ranks; r++) sums.from[r] = trine_cpu_group_half(call, r) + 4 * part * rows * columns;
    sum_products(call, &sums);
    return TRINE_OK;
}

/* Of no elements one empty piece, so that all ranks' calls are compared. */
static inline trine_status summed_products_run(const summed_products *s, int part) {
    if (s->rows == 0 || s->columns == 0) return sum_piece(s, 0, 0, part);
    for (int64_t row = 0; row < s->m; row += s->rows)
        for (int64_t column = 0; column < s->n; column += s->columns) {
            const trine_status status = sum_piece(s, row, column, part);
            if (status != TRINE_OK) return status;
        }
    return TRINE_OK;
}

static inline const char *summed_products_refuse(const summed_products *s) {
    size_t bytes;
    return summed_products_plan(s, &bytes) == TRINE_OK ? NULL : "matmul has no kernel for it";
}

static inline size_t summed_products_workspace(const summed_products *s) {
    size_t bytes;
    return summed_products_plan(s, &bytes) == TRINE_OK ? bytes : 0;
}

#endif
