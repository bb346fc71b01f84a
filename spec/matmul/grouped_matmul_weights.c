/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_weights: the table and the reference. */
#include <stdlib.h>

#include <trine/matmul.h>

#include "product.h"

#define ARGS trine_grouped_matmul_weights_args

/* Bound, as of matmul (spec/matmul/element.h): a sum of c products is off by c u sum |dy x|, or in matrix units by
 * (2.25 c + 4)u of it, which the magnitude, (c + 4) times the sum or 2.25 times that, has; a group's sum of its rows by
 * c u sum |dy|. Operands below the smallest normal, of bf16, may be taken for zero, and units cut where others round,
 * an operand counting as the smallest normal at least. */
typedef struct group {
    int64_t first, last, n, k; /* rows of dy, among those that have one of x */
    const int64_t *from;       /* of each row of dy, the row of x; -1: none */
    const double *dy, *x;
} group;

static void product(const group *g, trine_ref *ref, int64_t j, int64_t q, int64_t at) {
    const trine_dtype in = trine_ref_type(ref, "T"), out = trine_ref_type(ref, "O");
    const double least = trine_smallest_normal(in), lost = in == TRINE_BF16 ? 0x1p-126 : 0x1p-150,
                 largest = trine_largest(TRINE_F32);
    long double sum = 0;
    double scale = 0, weight = 0, flushed = 0, count = 0;
    for (int64_t i = g->first; i < g->last; i++) {
        if (g->from[i] < 0) continue;
        const double a = g->dy[i * g->n + j], b = g->x[g->from[i] * g->k + q];
        const long double term = (long double)a * b;
        sum += term;
        count++;
        if (!isfinite(a) || !isfinite(b)) continue;
        scale += fabs((double)term);
        if (a != 0 && b != 0) weight += fmax(fabs(a), least) * fmax(fabs(b), least);
        if (in == TRINE_BF16 && (fabs(a) < 0x1p-126 || fabs(b) < 0x1p-126)) flushed += fabs((double)term);
    }
    double *magnitude = trine_ref_magnitude(ref, "dw") + at, *slack = trine_ref_slack(ref, "dw") + at;
    const double m = in == TRINE_F32 ? scale : 2.25 * weight;
    trine_ref_value(ref, "dw")[at] = (double)sum;
    if (count == 0) return;
    *magnitude = (count + 4) * m * (1 + trine_unit_roundoff(out));
    *slack = trine_smallest_normal(out) * trine_unit_roundoff(out) + 2 * (count * lost + flushed + 3 * lost);
    if (!(scale < largest && m < largest)) *magnitude = INFINITY, *slack = 0;
}

static void bias(const group *g, trine_ref *ref, int64_t j, int64_t at) {
    double sum = 0, size = 0, count = 0;
    for (int64_t i = g->first; i < g->last; i++) {
        if (g->from[i] < 0) continue;
        sum += g->dy[i * g->n + j], size += trine_finite_abs(g->dy[i * g->n + j]);
        count++;
    }
    trine_ref_value(ref, "dbias")[at] = sum;
    trine_ref_magnitude(ref, "dbias")[at] = size < trine_largest(TRINE_F32) ? count * size : INFINITY;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), e = trine_ref_dim(ref, "e"), p = trine_ref_dim(ref, "p"),
                  n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const double *offsets = trine_ref_value(ref, "offsets"), *gather = trine_ref_value(ref, "gather");
    int64_t *from = malloc(sizeof *from * (size_t)(p + 1));
    if (from == NULL) abort();
    for (int64_t i = 0; i < p; i++) {
        const double row = gather ? floor(gather[i] / (double)args->divide) : (double)i;
        from[i] = row < 0 || row >= (double)r ? -1 : (int64_t)row;
    }
    for (int64_t g = 0; g < e; g++) {
        const group one = { .first = (int64_t)offsets[g],
                            .last = (int64_t)offsets[g + 1],
                            .n = n,
                            .k = k,
                            .from = from,
                            .dy = trine_ref_value(ref, "dy"),
                            .x = trine_ref_value(ref, "x") };
        for (int64_t j = 0; j < n; j++) {
            for (int64_t q = 0; q < k; q++) product(&one, ref, j, q, (g * n + j) * k + q);
            if (trine_ref_value(ref, "dbias")) bias(&one, ref, j, g * n + j);
        }
    }
    free(from);
}

const trine_spec trine_spec_grouped_matmul_weights = {
    SPEC(grouped_matmul_weights),
    .summary = "Gradients of grouped_matmul's matrices and biases: products of each group's rows, transposed",
    .formula =
        "dw[g,j,q] = sum over i with offsets[g] <= i < offsets[g+1] of dy[i,j] x[s,q], s = i, or gather[i]/divide "
        "rounded down, without those that have no such row; dbias[g,j] = sum over the same i of dy[i,j]",
    .source = "the derivative of grouped_matmul's formula (Gale et al. 2023)",
    .tensors = { TENSOR(dy, IN, "T", "p n"), TENSOR(x, IN, "T", "r k"),
                 TENSOR(offsets, IN, "i32", "e+1", .fill = "offsets p"),
                 TENSOR(gather, IN | OPTIONAL, "i32", "p", .fill = "places r"),
                 TENSOR(dw, OUT, "O", "e n k", .terms = "1"), TENSOR(dbias, OUT | OPTIONAL, "B", "e n", .terms = "1") },
    .params = { PARAM(divide, I64, .values = "1 2 3", .fallback = 1, .min = 0,
                      .doc = "gather counts rows of x so many times each") },
    .types = { "T=f32 O=f32 B=f32", "T=f16 O=f16|f32 B=f32", "T=f16 O=f16 B=f16", "T=bf16 O=bf16|f32 B=f32",
               "T=bf16 O=bf16 B=bf16" },
    .require = { "without gather: r == p" },
    .flops = "2*p*n*k",
    .integers_exact = true,
    .sizes = { "p: 1 0 2 5 16 33 64 97 200 600", "n: 1 0 3 8 16 17 33 64 100 257", "r: 1 0 2 5 16 33 64 97 200 600",
               "k: 1 0 3 8 17 31 64 129 257", "e: 1 2 0 3 8 17 60" },
    .cases = { "mixtral up: T=bf16 O=bf16 r=4096 e=8 p=8192 n=14336 k=4096 divide=2 +gather",
               "mixtral down: T=bf16 O=bf16 r=8192 e=8 p=8192 n=4096 k=14336",
               "qwen3 up: T=bf16 O=bf16 r=4096 e=128 p=32768 n=768 k=2048 divide=8 +gather",
               "qwen3 up f32: T=f32 r=512 e=128 p=4096 n=768 k=2048 divide=8 +gather" },
    .reference = reference,
};
