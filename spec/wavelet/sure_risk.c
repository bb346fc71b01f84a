/* SPDX-License-Identifier: Apache-2.0 */
/* sure_risk: the table and the reference. Of h w terms, each of which rounds its square and one or two sums, and of
 * their sum in f64 in any order: h w + 6 with the constants' roundings. */
#include <trine/wavelet.h>

#include "spec/spec.h"

#define ARGS trine_sure_risk_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t b = trine_ref_dim(ref, "b"), g = trine_ref_dim(ref, "g"),
                  n = trine_ref_dim(ref, "h") * trine_ref_dim(ref, "w");
    const double *x = trine_ref_value(ref, "x"), *threshold = trine_ref_value(ref, "threshold");
    const double variance = (double)args->sigma * args->sigma;
    for (int64_t at = 0; at < b * g; at++) {
        const double t = threshold[at % g];
        double sum = 0, size = 0;
        for (int64_t i = at / g * n; i < (at / g + 1) * n; i++) {
            const double a = fabs(x[i]), least = a <= t ? a : a > t ? t : NAN;
            sum += least * least + (a <= t ? -variance : variance);
            size += trine_finite_abs(least * least) + 3 * variance;
            if (isfinite(least) && isinf(least * least)) size = INFINITY;
        }
        trine_ref_value(ref, "risk")[at] = sum;
        trine_ref_magnitude(ref, "risk")[at] = size;
    }
}

const trine_spec trine_spec_sure_risk = {
    SPEC(sure_risk),
    .summary = "Stein's unbiased estimate of the risk of soft thresholds",
    .formula = "risk[b,g] = sum over h, w of (sigma^2 + min(|x[b,h,w]|, threshold[g])^2 - 2 sigma^2 if |x[b,h,w]| <= "
               "threshold[g])",
    .source = "Stein 1981; Donoho and Johnstone 1995, section 2.2",
    .tensors = { TENSOR(x, IN | ANY_STRIDE, "T", "[b] [h] w"), TENSOR(threshold, IN | ANY_STRIDE, "T", "g"),
                 TENSOR(risk, OUT | ANY_STRIDE, "T", "[b] g", .terms = "h*w + 6", .accumulate = "f64") },
    .params = { PARAM(sigma, F32, .values = "1 0.5 2", .fallback = 1, .min = 0, .doc = "deviation of the noise") },
    .types = { "T=f32|f64" },
    .flops = "3*b*g*h*w",
    .independent = "b",
    .sizes = { "b: 1 0 2 3 16", "g: 5 0 1 2 16 40", "h: 1 0 2 5 17 64", "w: 8 0 1 3 7 16 33 100 1000" },
    .cases = { "bands f32: T=f32 b=16 g=32 h=512 w=512", "bands f64: T=f64 b=16 g=32 h=512 w=512" },
    .reference = reference,
};
