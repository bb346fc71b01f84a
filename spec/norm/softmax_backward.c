/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward: the table and the reference. */
#include <trine/norm.h>

#include "softmax_backward.h"

#define ARGS trine_softmax_backward_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t g = trine_ref_dim(ref, "g"), s = trine_ref_dim(ref, "s"), n = trine_ref_dim(ref, "n");
    const double *y = trine_ref_value(ref, "y"), *dy = trine_ref_value(ref, "dy");
    double *dx = trine_ref_value(ref, "dx"), *magnitude = trine_ref_magnitude(ref, "dx"),
           *slack = trine_ref_slack(ref, "dx");
    for (int64_t i = 0; i < g * s; i++)
        softmax_gradient(y + i * n, dy + i * n, dx + i * n, magnitude + i * n, slack + i * n, n,
                         args->causal ? i % s + n - s + 1 : n, args->scale);
}

const trine_spec trine_spec_softmax_backward = {
    SPEC(softmax_backward),
    .summary = "Gradient of softmax",
    .formula =
        "dx[g,i,j] = scale y[g,i,j] (dy[g,i,j] - sum_k y[g,i,k] dy[g,i,k]) over the visible k; 0 where j is masked",
    .source = "the derivative of softmax's formula",
    .tensors = { TENSOR(y, IN, "T", "[g] s n", .fill = "unit"), TENSOR(dy, IN, "T", "[g] s n"),
                 TENSOR(dx, OUT, "T", "[g] s n", .terms = SOFTMAX_BACKWARD_TERMS(n)) },
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
