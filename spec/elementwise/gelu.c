/* SPDX-License-Identifier: Apache-2.0 */
/* gelu: the table and the reference. */
#include "gelu.h"

#define ARGS trine_gelu_args

/* Bound, with u = 2^-24. Both forms are x times a distribution function, whose small values must be right too: 1 + tanh
 * and 1 + erf are not.
 *
 * tanh: y = x s, s = sigmoid(v), v = 2 sqrt(2/pi) (x + 0.044715 x^3). All terms of v have one sign: two rounded
 * constants, x^2, one product and one sum each, in all at most 7u of v, which moves s by 7u |v| (1 - s) of itself. With
 * s to 11u and the product: below 13u of |y| (1 + |v| (1 - s)).
 * erf: y = x F, F(x) = erfc(-x/sqrt 2)/2. The argument is off by 2u, which moves F by 2u |x| f(x) of 1, f the density:
 * for x < 0 at most 2u (1 + x^2) of F (since f(x) < F(x) (|x| + 1/|x|), Gordon 1941), for x > 0 at most u. erfc to 4
 * ulp, 8u, and the product: below 13u of |y| (1 + x^2), or of |y|. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < count; i++) {
        const double v = gelu_argument(x[i]), s = args->form == TRINE_GELU_TANH ? sigmoid(v) : normal_cdf(x[i]);
        y[i] = x[i] * s;
        if (!isfinite(y[i])) continue;
        magnitude[i] = fabs(y[i]) * (args->form == TRINE_GELU_TANH ? 1 + fabs(v) * sigmoid(-v)
                                     : x[i] < 0                    ? 1 + x[i] * x[i]
                                                                   : 1);
        slack[i] = lost(s) * fabs(x[i]) + TINY;
    }
}

const trine_spec trine_spec_gelu = {
    SPEC(gelu),
    .summary = "Gaussian error linear unit",
    .formula = "tanh: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); erf: y = x/2 (1 + erf(x/sqrt 2))",
    .source = "Hendrycks and Gimpel 2016, section 2",
    .tensors = { TENSOR(x, IN, "T", SHAPE), TENSOR(y, OUT, "T", SHAPE, .terms = "14") },
    .params = { PARAM(form, ENUM, .values = "tanh erf", .doc = "TRINE_GELU_TANH or TRINE_GELU_ERF") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "y=x" },
    .flops = "20*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "gpt2-xl f32: T=f32 r=4096 n=6400", "gpt2-xl: T=bf16 r=8192 n=6400",
               "bert-large: T=bf16 r=8192 n=4096 form=erf", "bert-large f32: T=f32 r=4096 n=4096 form=erf",
               "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
