/* SPDX-License-Identifier: Apache-2.0 */
/* segment_reduce: the table and the reference. */
#include <trine/reduce.h>

#include "segments.h"

#define ARGS trine_segment_reduce_args

/* Bounds for c rows, with u = 2^-24. Sum: c - 1 additions in any order, c u of the sum of absolute values at most
 * (Higham 2002, section 4.2). Mean: the same of the mean, the quotient 2u more as a product with a rounded reciprocal,
 * and one for the second order. Max and min: exact. Product: c - 1 multiplications of numbers in [1, 2), whose
 * exponents are added as whole numbers, so that nothing is lost on the way: c + 2 of itself; what is subnormal at the
 * end is off by 2^-149 at most. Logsumexp: with m the maximum, t = m - x and S = sum of exp(-t): t is rounded once,
 * which costs the power t u of itself; the power 6u, the sum c u; ln S is off by the relative error of S and 4u of
 * itself, and the last sum by u of y: (sum of t exp(-t)/S + 8 + c) u + 4u |ln S| + u |y|, and a hundredth for the
 * second order. A power below 2^-126 may be 0; S is at least 1. */
static void put(trine_ref *ref, int64_t at, double y, double magnitude, double slack) {
    trine_ref_value(ref, "y")[at] = y;
    trine_ref_magnitude(ref, "y")[at] = magnitude;
    trine_ref_slack(ref, "y")[at] = slack;
}

static void put_sum(trine_ref *ref, int64_t at, const double *x, int64_t c, int64_t n, bool mean) {
    double sum = 0, size = 0;
    for (int64_t i = 0; i < c; i++) sum += x[i * n], size += trine_finite_abs(x[i * n]);
    const double count = mean && c > 0 ? (double)c : 1;
    put(ref, at, sum / count,
        size > trine_largest(TRINE_F32) ? INFINITY
        : !isfinite(sum)                ? 0
        : mean                          ? size * (1 + 3 / count)
                                        : size * (double)c,
        mean ? 0x1p-149 : 0);
}

static void put_most(trine_ref *ref, int64_t at, const double *x, int64_t c, int64_t n, double sign) {
    double most = -INFINITY;
    for (int64_t i = 0; i < c; i++)
        if (!isnan(most) && !(sign * x[i * n] <= most)) most = sign * x[i * n];
    put(ref, at, sign * most, 0, 0);
}

static void put_power(trine_ref *ref, int64_t at, const double *x, int64_t c, int64_t n) {
    const segment_power p = segment_power_of(x, 0, c, n);
    const double y = isnan(p.most) ? NAN : isfinite(p.most) ? p.shift + log(p.sum) : p.most;
    const double error = p.cost + 8 + (double)c + 4 * fabs(log(p.sum)) + fabs(y);
    put(ref, at, y, isfinite(y) ? 1.01 * error : 0, isfinite(y) ? (double)c * 0x1p-126 : 0);
}

static void put_product(trine_ref *ref, int64_t at, const double *x, int64_t c, int64_t n) {
    segment_product p = { .m = 1 };
    for (int64_t i = 0; i < c; i++) p = segment_times(p, segment_factor(x[i * n]));
    const double y = segment_value(p);
    put(ref, at, y, isfinite(y) ? fabs(y) * (double)(c + 2) : 0, 0x1p-149);
}

static void reference(trine_ref *ref) {
    const int32_t kind = ((const ARGS *)ref->args)->kind;
    const int64_t e = trine_ref_dim(ref, "e"), n = trine_ref_dim(ref, "n");
    const double *offsets = trine_ref_value(ref, "offsets");
    for (int64_t k = 0; k < e * n; k++) {
        const int64_t s = k / n, first = (int64_t)offsets[s], c = (int64_t)offsets[s + 1] - first;
        const double *x = trine_ref_value(ref, "x") + first * n + k % n;
        switch (kind) {
        case TRINE_SEGMENT_SUM: put_sum(ref, k, x, c, n, false); break;
        case TRINE_SEGMENT_MEAN: put_sum(ref, k, x, c, n, true); break;
        case TRINE_SEGMENT_MAX: put_most(ref, k, x, c, n, 1); break;
        case TRINE_SEGMENT_MIN: put_most(ref, k, x, c, n, -1); break;
        case TRINE_SEGMENT_LOGSUMEXP: put_power(ref, k, x, c, n); break;
        default: put_product(ref, k, x, c, n);
        }
    }
}

const trine_spec trine_spec_segment_reduce = {
    SPEC(segment_reduce),
    .summary = "Sums, means, extremes, logsumexp or products of segments of rows",
    .formula =
        "y[s,j] = reduction of x[i,j] over offsets[s] <= i < offsets[s+1]; of an empty segment sum and mean 0, max "
        "and logsumexp -Inf, min Inf, product 1",
    .source = "by definition; Maene et al. 2025, section 3",
    .tensors = { TENSOR(x, IN, "T", "p n"), TENSOR(offsets, IN, "I", "e+1", .fill = "offsets p"),
                 TENSOR(y, OUT, "T", "e n", .terms = "1") },
    .params = { PARAM(kind, ENUM, .values = "sum mean max min logsumexp product",
                      .doc = "TRINE_SEGMENT_*: the reduction") },
    .types = { "T=f32|bf16|f16 I=i32|i64" },
    .flops = "p*n",
    .independent = "n",
    .integers_exact = true,
    .sizes = { "p: 31 0 1 2 500 3000", "e: 5 0 1 2 33 200", "n: 7 0 1 64 130 255 600" },
    .cases = { "graph, sums: T=f32 I=i32 p=524288 e=32768 n=128",
               "graph, max: T=bf16 I=i32 p=1048576 e=65536 n=128 kind=max",
               "circuit: T=f32 I=i32 p=1048576 e=262144 n=64 kind=logsumexp",
               "circuit, products: T=f32 I=i32 p=1048576 e=262144 n=64 kind=product",
               "pooled tokens: T=bf16 I=i32 p=65536 e=64 n=4096 kind=mean" },
    .reference = reference,
};
