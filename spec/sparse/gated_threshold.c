/* SPDX-License-Identifier: Apache-2.0 */
/* gated_threshold: the table and the reference. */
#include <trine/sparse.h>

#include <trine/elementwise.h>

#include <trine/matmul.h>

#include "spec/elementwise/gelu.h"
#include "spec/power.h"

#define ARGS trine_gated_threshold_args

/* The choice is exact. It is made by f32 values of these very operations, each rounded once to nearest even and none
 * fused:
 *
 * power(t), for t <= 0: 0 if t < -80; else with k = t LOG2E rounded to an integer by adding and taking off 1.5 2^23,
 * and r = (t - k LN2_HIGH) - k LN2_LOW, the polynomial of the series up to r^7/7! by Horner's rule, times 2^k.
 * logistic(v): with p = power(-|v|), 1/(1 + p), for v < 0 p/(1 + p).
 * silu: x logistic(x). gelu_tanh: x logistic(x ((x x) C3 + C1)).
 * gelu_erf: with a = |x|, at most 14.6, tail = power((a a) (-1/2)) (P(a)/Q(a)), P and Q by Horner's rule; x tail for
 * x < 0, x (1 - tail) otherwise.
 *
 * Bound, with u = 2^-24. power(t) for the rounded t is within 5u of itself (spec/moe/moe_route.c). logistic: 5u, half
 * of that in 1 + p, u for this and u for the quotient, within 9.5u.
 * silu: the product, within 10.5u of |y|.
 * gelu_tanh: all terms of v have one sign: two rounded constants, two products, one sum and one product, in all at most
 * 6u of v, which moves s by 6u |v| (1 - s) of itself. Within 12u of |y| (1 + |v| (1 - s)).
 * gelu_erf: the exponent is off by u a^2/2, of 1, and the power by that and 5u; the fit is within 0.7 (1 + a^2) u where
 * the power is not 0; three and four steps of Horner's rule with positive terms are 6u and 8u, the quotient and the
 * product u each, x tail another: within (23 + 1.2 a^2) u of |x| tail, which is less than 24u |y| (1 + x^2). For x >= 0
 * tail is at most half and counts beside 1 - tail: at most 23u of |y| again, and two roundings: 24u.
 * 14 stands for 12 and for second order and the output's rounding of it. */
#define C1 1.59576917f
#define C3 0.0713548139f
#define FLUSHED 79.99 /* an exponential of less than minus that may be 0 */

static float logistic(float v) {
    const float p = power(-fabsf(v));
    return once((v < 0 ? p : 1) / once(1 + p));
}

static float horner(const float *coefficient, int count, float a) {
    float p = coefficient[0];
    for (int i = 1; i < count; i++) p = once(once(p * a) + coefficient[i]);
    return p;
}

static float gelu_erf(float x) {
    static const float above[] = { 0.0139801381f, 0.106339224f, 0.338643521f, 0.49999997f },
                       below[] = { 0.0350565426f, 0.266118973f, 0.889719844f, 1.47516918f, 1 };
    const float a = fabsf(x) > 14.6f ? 14.6f : fabsf(x);
    const float quotient = once(horner(above, 4, a) / horner(below, 5, a));
    const float tail = once(power(once(a * a) * -0.5f) * quotient);
    return once(x * (x < 0 ? tail : once(1 - tail)));
}

static float compared(int32_t activation, float x) {
    switch (activation) {
    case TRINE_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case TRINE_ACTIVATION_GELU_TANH: return once(x * logistic(once(x * once(once(once(x * x) * C3) + C1))));
    case TRINE_ACTIVATION_GELU_ERF: return gelu_erf(x);
    case TRINE_ACTIVATION_SILU: return once(x * logistic(x));
    default: return x;
    }
}

static gelu_part value_of(int32_t activation, double x) {
    const double reach = fabs(activation == TRINE_ACTIVATION_GELU_TANH  ? gelu_argument(x)
                              : activation == TRINE_ACTIVATION_GELU_ERF ? x * x / 2
                                                                        : x);
    gelu_part part = { x < 0 ? 0 : x, 0, 0 };
    switch (activation) {
    case TRINE_ACTIVATION_NONE: part.value = x; return part;
    case TRINE_ACTIVATION_RELU: return part;
    case TRINE_ACTIVATION_GELU_TANH: part = gelu_of(TRINE_GELU_TANH, x); break;
    case TRINE_ACTIVATION_GELU_ERF:
        part = gelu_of(TRINE_GELU_ERF, x);
        part.size *= 2;
        break;
    default: part.value = x * sigmoid(x), part.size = fabs(part.value), part.loss = TINY; break;
    }
    if (reach > FLUSHED && x < 0) part.loss += fabs(part.value);
    return part;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *thresholds = trine_ref_value(ref, "thresholds");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    double *mask = trine_ref_value(ref, "mask"), *columns = trine_ref_value(ref, "columns"),
           *counts = trine_ref_value(ref, "counts");

    for (int64_t i = 0; i < r; i++) {
        int64_t count = 0;
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = i * n + j;
            const double threshold = thresholds ? thresholds[j] : (double)args->threshold;
            const bool kept = !(fabs((double)compared(args->activation, (float)x[at])) <= threshold);
            const gelu_part part = value_of(args->activation, x[at]);
            y[at] = kept ? part.value : 0;
            if (kept && isfinite(part.value)) magnitude[at] = part.size, slack[at] = part.loss;
            if (mask) mask[at] = kept;
            if (columns) columns[at] = -1;
            if (columns && kept) columns[i * n + count] = (double)j;
            count += kept;
        }
        if (counts) counts[i] = (double)count;
    }
}

const trine_spec trine_spec_gated_threshold = {
    SPEC(gated_threshold),
    .summary = "An activation of which small values are left out, with lists of what is kept",
    .formula =
        "y[i,j] = act(x[i,j]), or 0 where |act(x[i,j])| <= threshold; columns[i] are the kept j, ascending, then "
        "-1",
    .source = "Lee et al. 2024 (CATS), section 3",
    .tensors = { TENSOR(x, IN, "T", "r n"),
                 TENSOR(thresholds, IN | OPTIONAL | BROADCAST, "f32", "n", .fill = "positive"),
                 TENSOR(y, OUT, "T", "r n", .terms = "14"), TENSOR(mask, OUT | OPTIONAL | EXACT, "u8", "r n"),
                 TENSOR(columns, OUT | OPTIONAL | EXACT, "i32", "r n"),
                 TENSOR(counts, OUT | OPTIONAL | EXACT, "i32", "r") },
    .params = { PARAM(activation, ENUM, .values = "none relu gelu_tanh gelu_erf silu", .doc = "before the threshold"),
                PARAM(threshold, F32, .values = "0 0.05 0.5 2", .min = 0, .doc = "of |act(x)|") },
    .types = { "T=f32|bf16|f16" },
    .require = { "thresholds instead of threshold" },
    .alias = { "y=x" },
    .flops = "16*r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 5 40", "n: 17 0 1 2 3 8 64 255 1000 5000" },
    .cases = { "llama2-7b one token: T=bf16 r=1 n=11008 activation=silu threshold=0.1",
               "llama2-7b one token, listed: T=bf16 r=1 n=11008 activation=silu threshold=0.1 +columns +counts",
               "mistral-7b 4 tokens: T=bf16 r=4 n=14336 activation=silu +thresholds +mask",
               "llama2-7b prompt: T=bf16 r=2048 n=11008 activation=silu threshold=0.1",
               "gemma gelu f32: T=f32 r=1024 n=16384 activation=gelu_tanh threshold=0.1" },
    .reference = reference,
};
