/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_masked_backward: the table and the reference. */
#include <trine/norm.h>

#include "softmax_backward.h"

#define ARGS trine_softmax_masked_backward_args

/* Bound: that of softmax_backward.h; dbias is the same without scale. */
static void gradient(const trine_ref *ref, const char *name, double scale) {
    const ARGS *args = ref->args;
    const int64_t sq = trine_ref_dim(ref, "sq"), n = trine_ref_dim(ref, "sk"),
                  rows = trine_ref_dim(ref, "b") * trine_ref_dim(ref, "h") * sq;
    const double *y = trine_ref_value(ref, "y"), *dy = trine_ref_value(ref, "dy");
    double *value = trine_ref_value(ref, name), *magnitude = trine_ref_magnitude(ref, name),
           *slack = trine_ref_slack(ref, name);
    for (int64_t i = 0; value && i < rows; i++)
        softmax_gradient(y + i * n, dy + i * n, value + i * n, magnitude + i * n, slack + i * n, n,
                         args->causal ? i % sq + n - sq + 1 : n, scale);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    gradient(ref, "dx", args->scale);
    gradient(ref, "dbias", 1);
}

const trine_spec trine_spec_softmax_masked_backward = {
    SPEC(softmax_masked_backward),
    .summary = "Gradient of softmax_masked",
    .formula = "dx[b,h,i,j] = scale dz[b,h,i,j], dbias[b,h,i,j] = dz[b,h,i,j]; dz[b,h,i,j] = y[b,h,i,j] (dy[b,h,i,j] - "
               "sum_k y[b,h,i,k] dy[b,h,i,k]), over the k and for the j that the causal mask leaves, else 0",
    .source = "the derivative of softmax_masked's formula",
    .tensors = { TENSOR(y, IN, "T", "[b] [h] sq sk", .fill = "unit"), TENSOR(dy, IN, "T", "[b] [h] sq sk"),
                 TENSOR(dx, OUT, "T", "[b] [h] sq sk", .terms = SOFTMAX_BACKWARD_TERMS(sk)),
                 TENSOR(dbias, OUT | OPTIONAL, "B", "[b] [h] sq sk", .terms = SOFTMAX_BACKWARD_TERMS(sk)) },
    .params = { PARAM(scale, F32, .values = "1 0.125 -2", .fallback = 1, .doc = "the forward's"),
                PARAM(causal, BOOL, .values = "0 1", .doc = "the forward's") },
    .types = { "T=f32 B=f32", "T=bf16 B=bf16|f32", "T=f16 B=f16|f32" },
    .alias = { "dx=y dy" },
    .flops = "5*b*h*sq*sk",
    .masked = "sq sk",
    .independent = "b",
    .sizes = { "b: 1 0 2", "h: 1 2 3", "sq: 1 0 2 7 33", "sk: 1 0 3 31 64 127 1000 4097 20011" },
    .cases = { "gpt2-xl causal: T=bf16 b=2 h=25 sq=1024 sk=1024 scale=0.125 causal=1",
               "bert-large: T=bf16 b=4 h=16 sq=512 sk=512 scale=0.125",
               "bert-large f32: T=f32 b=4 h=16 sq=512 sk=512 scale=0.125",
               "t5-large with the bias's: T=bf16 B=bf16 b=4 h=16 sq=512 sk=512 +dbias",
               "long rows: T=bf16 h=4 sq=64 sk=65536 scale=0.125" },
    .reference = reference,
};
