/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward: the table and the reference. */
#include "norm.h"

#define ARGS trine_softmax_backward_args

/* Bound, with S = sum_k y_k dy_k and P = sum_k |y_k dy_k|: the products and their sum leave S off by (sum_depth(n) +
 * 1)u P; the difference dy_j - S and the products by y_j and scale round once each, four roundings of something no
 * larger than |scale y_j|(|dy_j| + P). Products below 2^-126 may be flushed: n of them in S, and one each of y_j (dy_j
 * - S), scale y_j and the result. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t g = trine_ref_dim(ref, "g"), s = trine_ref_dim(ref, "s"), n = trine_ref_dim(ref, "n");
    const double *y = trine_ref_value(ref, "y"), *dy = trine_ref_value(ref, "dy"), scale = args->scale;
    const double largest = trine_largest(TRINE_F32);
    double *dx = trine_ref_value(ref, "dx"), *magnitude = trine_ref_magnitude(ref, "dx"),
           *slack = trine_ref_slack(ref, "dx");
    for (int64_t i = 0; i < g * s; i++, y += n, dy += n, dx += n, magnitude += n, slack += n) {
        const int64_t visible = args->causal ? i % s + n - s + 1 : n;
        double sum = 0, sum_abs = 0;
        for (int64_t j = 0; j < visible; j++) {
            sum += y[j] * dy[j];
            sum_abs += trine_finite_abs(y[j] * dy[j]);
        }
        for (int64_t j = 0; j < n; j++) {
            dx[j] = j < visible ? scale * (y[j] * (dy[j] - sum)) : 0;
            if (j >= visible) continue;
            const double inner = trine_finite_abs(dy[j]) + sum_abs;
            magnitude[j] = isfinite(dx[j]) ? fabs(scale * y[j]) * inner : 0;
            if (inner > largest || trine_finite_abs(y[j]) * inner > largest || trine_finite_abs(scale * y[j]) > largest)
                magnitude[j] = INFINITY;
            if (!isfinite(dx[j])) continue;
            slack[j] = FLUSH * (fabs(scale * y[j]) * (double)n + fabs(scale) + inner + 1);
        }
    }
}

const trine_spec trine_spec_softmax_backward = {
    SPEC(softmax_backward),
    .summary = "Gradient of softmax",
    .formula =
        "dx[g,i,j] = scale y[g,i,j] (dy[g,i,j] - sum_k y[g,i,k] dy[g,i,k]) over the visible k; 0 where j is masked",
    .source = "the derivative of softmax's formula",
    .tensors = { TENSOR(y, IN, "T", "[g] s n", .fill = "unit"), TENSOR(dy, IN, "T", "[g] s n"),
                 TENSOR(dx, OUT, "T", "[g] s n", .terms = SUM_DEPTH(n) " + 6") },
    .params = { PARAM(scale, F32, .values = "1 0.125 -2", .fallback = 1, .doc = "the forward's"),
                PARAM(causal, BOOL, .values = "0 1", .doc = "the forward's") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "dx=y dy" },
    .flops = "5*g*s*n",
    .masked = "s n",
    .independent = "g",
    .sizes = { "g: 1 0 3", "s: 1 0 2 7 33", "n: 1 0 3 31 64 127 1000 4097 20011" },
    .cases = { "square f32: T=f32 s=4096 n=4096", "square: T=bf16 s=4096 n=4096",
               "heads causal: T=bf16 g=32 s=1024 n=1024 scale=0.125 causal=1", "vocabulary: T=bf16 s=64 n=128256" },
    .reference = reference,
};
