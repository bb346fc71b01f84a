/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_backward: the table and the reference. */
#include "gelu.h"

#define ARGS trine_gelu_backward_args

/* Bound, with u = 2^-24; sigmoid, v, F and f as in gelu.
 *
 * tanh: slope = s + x s t v' with t = 1 - s = sigmoid(-v) and v' = 2 sqrt(2/pi) (1 + 3 0.044715 x^2). s and t are off
 * by 11u of themselves (t by subtraction by 11u of 1: not allowed for here, as x s v' multiplies it), and by 7u |v| t
 * and 7u |v| s through v; v' by 6u. So s t by 23u + 7u |v|, the second term by 33u + 7u |v| of itself with its
 * products, the first by 11u + 7u |v| t; one more sum and one more product: within 36u of s (1 + |v| t) + |x| s t v' (1
 * + |v|). erf: slope = F + x f. F as in gelu by 10u times 1 + x^2 for x < 0, by 10u for x > 0. f = exp(-x^2/2)/sqrt(2
 * pi): the exponent is off by u x^2/2, exp by 8u, the constant and two products by 3u: 12u (1 + x^2) of |x| f. With the
 * sum and the product with dy within 16u, and the 36u are not needed. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *dy = trine_ref_value(ref, "dy"), *x = trine_ref_value(ref, "x");
    double *dx = trine_ref_value(ref, "dx"), *magnitude = trine_ref_magnitude(ref, "dx"),
           *slack = trine_ref_slack(ref, "dx");

    for (int64_t i = 0; i < count; i++) {
        double slope, size, loss;
        if (args->form == TRINE_GELU_TANH) {
            const double v = gelu_argument(x[i]), s = sigmoid(v), t = sigmoid(-v),
                         dv = 2 * sqrt(2 / PI) * (1 + 3 * 0.044715 * x[i] * x[i]);
            slope = s + x[i] * (s * t * dv);
            size = s * (1 + fabs(v) * t) + fabs(x[i]) * (s * t * dv * (1 + fabs(v)));
            loss = lost(s) + fabs(x[i]) * dv * (lost(s) * t + s * lost(t)) + TINY * (1 + fabs(x[i]));
        } else {
            const double cdf = normal_cdf(x[i]), pdf = exp(-x[i] * x[i] / 2) / sqrt(2 * PI), square = 1 + x[i] * x[i];
            slope = cdf + x[i] * pdf;
            size = (x[i] < 0 ? cdf * square : cdf) + fabs(x[i]) * (pdf * square);
            loss = lost(cdf) + fabs(x[i]) * lost(pdf) + TINY;
        }
        dx[i] = dy[i] * slope;
        if (!isfinite(dx[i])) {
            /* Inf times a slope near 0 may have either sign, and times one flushed is NaN. */
            if (isinf(dx[i]) && isfinite(x[i]) && fabs(slope) <= 36 * 0x1p-24 * size + loss) magnitude[i] = INFINITY;
            continue;
        }
        magnitude[i] = fabs(dy[i]) * size;
        slack[i] = fabs(dy[i]) * loss + TINY;
    }
}

const trine_spec trine_spec_gelu_backward = {
    SPEC(gelu_backward),
    .summary = "Gradient of gelu",
    .formula = "tanh: dx = dy (s + x s (1 - s) v'), s = (1 + tanh(v/2))/2, v = 2 sqrt(2/pi) (x + 0.044715 x^3); erf: "
               "dx = dy (F + x f), F = (1 + erf(x/sqrt 2))/2, "
               "f = exp(-x^2/2)/sqrt(2 pi)",
    .source = "Hendrycks and Gimpel 2016, section 2, differentiated",
    .tensors = { TENSOR(dy, IN, "T", SHAPE), TENSOR(x, IN, "T", SHAPE), TENSOR(dx, OUT, "T", SHAPE, .terms = "36") },
    .params = { PARAM(form, ENUM, .values = "tanh erf", .doc = "TRINE_GELU_TANH or TRINE_GELU_ERF") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "dx=dy", "dx=x" },
    .flops = "30*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "gpt2-xl f32: T=f32 r=4096 n=6400", "gpt2-xl: T=bf16 r=8192 n=6400",
               "bert-large: T=bf16 r=8192 n=4096 form=erf", "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
