/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_bias: the table and the reference. */
#include <trine/bias.h>

#include "bias.h"

#define ARGS trine_gelu_bias_args

/* Bound, with u = 2^-24, h = x + bias and gelu(h) within 12u of |y| (1 + c) as spec/elementwise/gelu.h says. The sum
 * rounds once, which moves h by u|h| and y by u|h gelu'(h)|. tanh: h gelu'(h) = y (1 + h v' (1 - s)), and h v' <= 3 v:
 * at most 3u of |y| (1 + c). erf: h gelu'(h) = y (1 + h f/F), |h| f/F at most 1 + h^2 for h < 0 and 1 for h > 0: at
 * most 2u of |y| (1 + c). Second order and the output's rounding of it within 17u. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n"), count = trine_ref_dim(ref, "r") * n;
    const double *x = trine_ref_value(ref, "x"), *bias = trine_ref_value(ref, "bias");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    for (int64_t i = 0; i < count; i++) {
        const bias_sum sum = bias_sum_of(x, bias, i, n);
        const gelu_part part = gelu_of(args->form, sum.h);
        y[i] = part.value;
        if (sum.over) magnitude[i] = INFINITY;
        if (!isfinite(y[i]) || sum.over) continue;
        magnitude[i] = part.size;
        slack[i] = part.loss;
    }
}

const trine_spec trine_spec_gelu_bias = {
    SPEC(gelu_bias),
    .summary = "Gaussian error linear unit of rows plus a bias",
    .formula = "y[i,j] = gelu(x[i,j] + bias[j]); tanh: gelu(h) = h/2 (1 + tanh(sqrt(2/pi) (h + 0.044715 h^3))); erf: "
               "gelu(h) = h/2 (1 + erf(h/sqrt 2))",
    .source = "Hendrycks and Gimpel 2016, section 2; Narayanan et al. 2021 (Megatron-LM), section 4.2; Aminabadi et "
              "al. 2022 (DeepSpeed Inference)",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(bias, IN, "W", "n"), TENSOR(y, OUT, "T", "r n", .terms = "17") },
    .params = { PARAM(form, ENUM, .values = "tanh erf", .doc = "TRINE_GELU_TANH or TRINE_GELU_ERF") },
    .types = { "T=f32 W=f32", "T=bf16 W=bf16|f32", "T=f16 W=f16|f32" },
    .alias = { "y=x" },
    .flops = "21*r*n",
    .independent = "r",
    .sizes = BIAS_SIZES,
    .cases = { "gpt2-xl: T=bf16 W=bf16 r=8192 n=6400", "gpt2-xl f32: T=f32 W=f32 r=4096 n=6400",
               "bert-large: T=bf16 W=bf16 r=8192 n=4096 form=erf", "gpt2-xl decode: T=bf16 W=bf16 r=8 n=6400",
               "in cache: T=f32 W=f32 r=64 n=1024" },
    .reference = reference,
};
