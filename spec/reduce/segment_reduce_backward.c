/* SPDX-License-Identifier: Apache-2.0 */
/* segment_reduce_backward: the table and the reference. */
#include <stdlib.h>

#include <trine/reduce.h>

#include "segments.h"

#define ARGS trine_segment_reduce_backward_args

/* Bounds for c rows, with u = 2^-24, of |dx|. Sum, max and min: exact. Mean: the quotient, or a product with a rounded
 * reciprocal, and the second order: 3u. Product: c multiplications with dy among them, and a quotient: c + 4; what is
 * subnormal at the end is off by 2^-149 at most. Logsumexp: as in segment_reduce.c the power has (t + 6) u, S its share
 * of (sum of t exp(-t)/S + 6 + c) u, the quotient 4u, the product 1u: t + sum of t exp(-t)/S + c + 17, and a hundredth
 * for the second order. A power below 2^-126 may be 0, and makes NaN of an Inf. */
static void put(trine_ref *ref, int64_t at, double dx, double magnitude, double slack) {
    trine_ref_value(ref, "dx")[at] = dx;
    trine_ref_magnitude(ref, "dx")[at] = magnitude;
    trine_ref_slack(ref, "dx")[at] = slack;
}

/* Of a column of a segment of c rows; `at` is the first of them. */
static void put_most(trine_ref *ref, int64_t at, double dy, int64_t c, int64_t n, double sign) {
    const double *x = trine_ref_value(ref, "x") + at;
    int64_t first = 0;
    for (int64_t i = 1; i < c; i++)
        if (!isnan(x[first * n]) && !(sign * x[i * n] <= sign * x[first * n])) first = i;
    for (int64_t i = 0; i < c; i++) put(ref, at + i * n, i == first ? dy : 0, 0, 0);
}

static void put_power(trine_ref *ref, int64_t at, double dy, int64_t c, int64_t n) {
    const double *x = trine_ref_value(ref, "x") + at;
    const segment_power p = segment_power_of(x, 0, c, n);
    for (int64_t i = 0; i < c; i++) {
        const double part = isnan(p.most)      ? NAN
                            : isfinite(p.most) ? exp(x[i * n] - p.shift) / p.sum
                            : p.most < 0       ? 0
                                               : exp(x[i * n] - p.most);
        const double dx = dy * part, t = part > 0 ? p.shift - x[i * n] : 0;
        const double error = fabs(dx) * (t + p.cost + (double)c + 17) * 1.01;
        put(ref, at + i * n, dx,
            isinf(dy) && part < 0x1p-100 ? INFINITY
            : isfinite(dx)               ? error
                                         : 0,
            isfinite(dx) ? fabs(dy) * 0x1p-125 + 0x1p-149 : 0);
    }
}

static void put_products(trine_ref *ref, int64_t at, double dy, int64_t c, int64_t n) {
    const double *x = trine_ref_value(ref, "x") + at;
    segment_product *behind = malloc(sizeof *behind * ((size_t)c + 1));
    if (behind == NULL) abort();
    behind[c] = (segment_product){ .m = 1 };
    for (int64_t i = c - 1; i >= 0; i--) behind[i] = segment_times(behind[i + 1], segment_factor(x[i * n]));
    segment_product before = segment_factor(dy);
    for (int64_t i = 0; i < c; i++) {
        const double dx = segment_value(segment_times(before, behind[i + 1]));
        put(ref, at + i * n, dx, isfinite(dx) ? fabs(dx) * (double)(c + 4) : 0, 0x1p-149);
        before = segment_times(before, segment_factor(x[i * n]));
    }
    free(behind);
}

static void put_column(trine_ref *ref, int32_t kind, int64_t at, double dy, int64_t c, int64_t n) {
    switch (kind) {
    case TRINE_SEGMENT_MAX: put_most(ref, at, dy, c, n, 1); return;
    case TRINE_SEGMENT_MIN: put_most(ref, at, dy, c, n, -1); return;
    case TRINE_SEGMENT_LOGSUMEXP: put_power(ref, at, dy, c, n); return;
    case TRINE_SEGMENT_PRODUCT: put_products(ref, at, dy, c, n); return;
    default: break;
    }
    const bool mean = kind == TRINE_SEGMENT_MEAN;
    for (int64_t i = 0; i < c; i++)
        put(ref, at + i * n, mean ? dy / (double)c : dy, mean ? 3 * trine_finite_abs(dy) / (double)c : 0,
            mean ? 0x1p-149 : 0);
}

static void reference(trine_ref *ref) {
    const int32_t kind = ((const ARGS *)ref->args)->kind;
    const int64_t e = trine_ref_dim(ref, "e"), n = trine_ref_dim(ref, "n"), p = trine_ref_dim(ref, "p");
    const double *offsets = trine_ref_value(ref, "offsets"), *dy = trine_ref_value(ref, "dy");
    for (int64_t k = 0; k < p * n; k++) put(ref, k, 0, 0, 0);
    for (int64_t k = 0; k < e * n; k++) {
        const int64_t first = (int64_t)offsets[k / n], c = (int64_t)offsets[k / n + 1] - first;
        put_column(ref, kind, first * n + k % n, dy[k], c, n);
    }
}

const trine_spec trine_spec_segment_reduce_backward = {
    SPEC(segment_reduce_backward),
    .summary = "Gradient of segment_reduce",
    .formula =
        "dx[i,j] = dy[s,j] d y[s,j]/d x[i,j] for offsets[s] <= i < offsets[s+1]; of max and min all of dy goes to "
        "the first row that has the value of y; 0 in rows of no segment",
    .source = "the derivative of segment_reduce's formula",
    .tensors = { TENSOR(dy, IN, "T", "e n"), TENSOR(x, IN, "T", "p n"),
                 TENSOR(offsets, IN, "I", "e+1", .fill = "offsets p"), TENSOR(dx, OUT, "T", "p n", .terms = "1") },
    .params = { PARAM(kind, ENUM, .values = "sum mean max min logsumexp product",
                      .doc = "TRINE_SEGMENT_*: the reduction") },
    .types = { "T=f32|bf16|f16 I=i32|i64" },
    .alias = { "dx=x" },
    .flops = "2*p*n",
    .independent = "n",
    .integers_exact = true,
    .sizes = { "p: 31 0 1 2 500 3000", "e: 5 0 1 2 33 200", "n: 7 0 1 64 130 255 600" },
    .cases = { "graph, sums: T=f32 I=i32 p=524288 e=32768 n=128",
               "graph, max: T=bf16 I=i32 p=1048576 e=65536 n=128 kind=max",
               "circuit: T=f32 I=i32 p=1048576 e=262144 n=64 kind=logsumexp",
               "circuit, products: T=f32 I=i32 p=1048576 e=262144 n=64 kind=product" },
    .reference = reference,
};
