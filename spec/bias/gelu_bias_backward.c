/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_bias_backward: the table and the reference. */
#include <trine/bias.h>

#include "bias.h"

#define ARGS trine_gelu_bias_backward_args

/* Bound, with u = 2^-24, h = x + bias and slope = gelu'(h) within 35u of what spec/elementwise/gelu.h calls its size.
 * The sum rounds once, which moves h by u|h| and the slope by u|h gelu''(h)|. tanh: h gelu''(h) is h s t v' times 2 +
 * (t - s) h v' + h v''/v', whose parts are at most 2, 3|v| and 2: within 4u of |h| s t v' (1 + |v|). erf: h f (2 -
 * h^2), within 2u of |h| f (1 + h^2). With the product by dy and second order within 42u.
 *
 * dbias sums those, before they are rounded to T. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n"), count = trine_ref_dim(ref, "r") * n;
    const double *dy = trine_ref_value(ref, "dy"), *x = trine_ref_value(ref, "x"), *bias = trine_ref_value(ref, "bias");
    double *dx = trine_ref_value(ref, "dx"), *magnitude = trine_ref_magnitude(ref, "dx"),
           *slack = trine_ref_slack(ref, "dx");
    for (int64_t i = 0; i < count; i++) {
        const bias_sum sum = bias_sum_of(x, bias, i, n);
        const gelu_part slope = gelu_slope(args->form, sum.h);
        dx[i] = dy[i] * slope.value;
        /* Inf times a slope near 0 may have either sign, and times one flushed is NaN. */
        if (sum.over ||
            (isinf(dx[i]) && isfinite(sum.h) && fabs(slope.value) <= 42 * 0x1p-24 * slope.size + slope.loss))
            magnitude[i] = INFINITY;
        if (!isfinite(dx[i]) || sum.over) continue;
        magnitude[i] = fabs(dy[i]) * slope.size;
        slack[i] = fabs(dy[i]) * slope.loss + TINY;
    }
    bias_gradient(ref, dx, magnitude, slack);
}

const trine_spec trine_spec_gelu_bias_backward = {
    SPEC(gelu_bias_backward),
    .summary = "Gradient of gelu_bias",
    .formula = "dx[i,j] = dy[i,j] gelu'(x[i,j] + bias[j]), gelu' as of gelu_backward; dbias[j] = sum_i dx[i,j]",
    .source = "Hendrycks and Gimpel 2016, section 2, differentiated",
    .tensors = { TENSOR(dy, IN, "T", "r n"), TENSOR(x, IN, "T", "r n"), TENSOR(bias, IN, "W", "n"),
                 TENSOR(dx, OUT, "T", "r n", .terms = "42"),
                 TENSOR(dbias, OUT | OPTIONAL, "W", "n", .terms = SUM_DEPTH(r) " + 42") },
    .params = { PARAM(form, ENUM, .values = "tanh erf", .doc = "TRINE_GELU_TANH or TRINE_GELU_ERF") },
    .types = { "T=f32 W=f32", "T=bf16 W=bf16|f32", "T=f16 W=f16|f32" },
    .alias = { "dx=dy x" },
    .flops = "32*r*n",
    .independent = "r",
    .sizes = BIAS_SIZES,
    .cases = { "gpt2-xl: T=bf16 W=bf16 r=8192 n=6400 +dbias", "gpt2-xl f32: T=f32 W=f32 r=4096 n=6400 +dbias",
               "bert-large: T=bf16 W=bf16 r=8192 n=4096 form=erf +dbias",
               "without dbias: T=bf16 W=bf16 r=8192 n=6400" },
    .reference = reference,
};
