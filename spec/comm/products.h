/* SPDX-License-Identifier: Apache-2.0 */
/* Products, and sums of all ranks' products: the references of the ops that multiply and exchange. */
#ifndef TRINE_COMM_PRODUCTS_H
#define TRINE_COMM_PRODUCTS_H

#include <trine/comm.h>
#include <trine/matmul.h>

#include "spec/matmul/element.h"

#define PRODUCT_TYPES { "T=f32 O=f32", "T=bf16 O=bf16|f32", "T=f16 O=f16|f32" }

/* Matrices of all ranks: those of rank r are so many elements further. */
typedef struct products {
    const double *a, *b;
    int64_t ranks, a_step, b_step, n, k;
    trine_dtype in, out;
    bool below; /* an element of a or b is subnormal */
} products;

static inline products products_of(const trine_ref *ref, int64_t rows) {
    products p = { .a = trine_ref_value(ref, "a"),
                   .b = trine_ref_value(ref, "b"),
                   .ranks = trine_ref_dim(ref, "ranks"),
                   .n = trine_ref_dim(ref, "n"),
                   .k = trine_ref_dim(ref, "k"),
                   .in = trine_ref_type(ref, "T"),
                   .out = trine_ref_type(ref, "O") };
    const double least = trine_smallest_normal(p.in);
    p.a_step = rows * p.k;
    p.b_step = p.k * p.n;
    p.below = any_below(p.a, p.ranks * p.a_step, least) || any_below(p.b, p.ranks * p.b_step, least);
    return p;
}

/* Row i of what rank `left` has by column j of what rank `right` has: as matmul's. */
static inline result product_of(const products *p, int64_t left, int64_t i, int64_t right, int64_t j, trine_dtype out) {
    const trine_matmul_args plain = { .alpha = 1 };
    const double *row = p->a + left * p->a_step + i * p->k, *column = p->b + right * p->b_step + j,
                 least = trine_smallest_normal(p->in);
    dot s = p->below && p->in == TRINE_BF16 ? dot_careful(row, column, p->k, p->n, 0x1p-126)
                                            : dot_of(row, column, p->k, p->n);
    if (p->below) s.weight = dot_weight(row, column, p->k, p->n, least, least);
    return element(&plain, s, factors_of(&plain, NULL, NULL), p->k, NULL, NULL, p->in, out);
}

/* Bound of a sum over ranks, with u = 2^-24 and M_r what element.h has for rank r's product in f32, which is off by
 * (k + 4)u M_r and its slack. The sum of the ranks' products in their order is ranks - 1 additions, each off by u of a
 * partial sum, which is at most (1 + (k + 4)u) sum M_r: with the errors' products (k + 4 + ranks)u sum M_r. Rounding
 * the sum to d's type, the only rounding to it, multiplies the error by 1 + u(d). A partial sum that may overflow is
 * told by the sum of the M_r. */
static inline result sum_of_products(const products *p, int64_t i, int64_t j) {
    result all = { 0 };
    for (int64_t r = 0; r < p->ranks; r++) {
        const result own = product_of(p, r, i, r, j, TRINE_F32);
        all.value = r == 0 ? own.value : all.value + own.value;
        all.magnitude += own.magnitude;
        all.slack += own.slack;
    }
    if (!(all.magnitude < trine_largest(TRINE_F32))) return (result){ all.value, INFINITY, 0 };
    all.magnitude *= 1 + trine_unit_roundoff(p->out);
    all.slack += trine_smallest_normal(p->out) * trine_unit_roundoff(p->out);
    return all;
}

#endif
