/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine_backward: the table and the reference. */
#include <stdlib.h>

#include <trine/moe.h>

#include "spec/spec.h"

#define ARGS trine_moe_combine_backward_args

/* Bound, u = 2^-24. A place that c slots name has the sum of c products: off by at most c u sum |w dy| in any order,
 * fused or not (Jeannerod and Rump 2013); the magnitude is c + 1 times that sum, one for what the output's rounding
 * makes of it. A weight's gradient is a sum of n products, by 8 partial sums at least, some of which have a vector
 * more, then of these by halves: (n/8 + 12)u. Products below 2^-126 lose up to 2^-149 each. */
static void gradient_of_weights(trine_ref *ref) {
    const int64_t t = trine_ref_dim(ref, "t"), k = trine_ref_dim(ref, "k"), p = trine_ref_dim(ref, "p"),
                  n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *dy = trine_ref_value(ref, "dy"),
                 *places = trine_ref_value(ref, "places");
    double *dweights = trine_ref_value(ref, "dweights"), *magnitude = trine_ref_magnitude(ref, "dweights"),
           *slack = trine_ref_slack(ref, "dweights");
    for (int64_t slot = 0; slot < t * k; slot++) {
        dweights[slot] = 0;
        if (places[slot] < 0 || places[slot] >= (double)p) continue;
        const double *a = dy + slot / k * n, *b = x + (int64_t)places[slot] * n;
        long double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const long double term = (long double)a[j] * b[j];
            sum += term;
            magnitude[slot] += trine_finite_abs((double)term);
            slack[slot] += 0x1p-149;
        }
        dweights[slot] = (double)sum;
        if (!(magnitude[slot] < trine_largest(TRINE_F32))) magnitude[slot] = INFINITY;
    }
}

static void reference(trine_ref *ref) {
    const int64_t t = trine_ref_dim(ref, "t"), k = trine_ref_dim(ref, "k"), p = trine_ref_dim(ref, "p"),
                  n = trine_ref_dim(ref, "n");
    const double *dy = trine_ref_value(ref, "dy"), *places = trine_ref_value(ref, "places"),
                 *weights = trine_ref_value(ref, "weights");
    double *dx = trine_ref_value(ref, "dx"), *magnitude = trine_ref_magnitude(ref, "dx"),
           *slack = trine_ref_slack(ref, "dx");
    int64_t *times = calloc((size_t)p + 1, sizeof *times);
    long double *sum = calloc((size_t)(p * n) + 1, sizeof *sum);
    if (times == NULL || sum == NULL) abort();
    for (int64_t slot = 0; slot < t * k; slot++) {
        if (places[slot] < 0 || places[slot] >= (double)p) continue;
        const int64_t q = (int64_t)places[slot];
        times[q]++;
        for (int64_t j = 0; j < n; j++) {
            const long double term = (long double)(weights ? weights[slot] : 1) * dy[slot / k * n + j];
            sum[q * n + j] += term;
            magnitude[q * n + j] += trine_finite_abs((double)term);
            slack[q * n + j] += 0x1p-150;
        }
    }
    for (int64_t i = 0; i < p * n; i++) {
        dx[i] = (double)sum[i];
        if (magnitude[i] < trine_largest(TRINE_F32))
            magnitude[i] *= (double)(times[i / n] + 1);
        else
            magnitude[i] = INFINITY;
    }
    free(times);
    free(sum);
    if (trine_ref_value(ref, "dweights")) gradient_of_weights(ref);
}

const trine_spec trine_spec_moe_combine_backward = {
    SPEC(moe_combine_backward),
    .summary = "Gradient of moe_combine: of what the experts made, and of the weights",
    .formula = "dx[q,j] = sum over i and a with places[i,a] = q of weights[i,a] dy[i,j], 0 where there is none; "
               "dweights[i,a] = sum_j dy[i,j] x[places[i,a],j], 0 where the place is not one of x",
    .source = "the derivative of moe_combine's formula",
    .tensors = { TENSOR(dy, IN, "O", "t n"), TENSOR(x, IN, "T", "p n"),
                 TENSOR(places, IN, "i32", "t k", .fill = "places p"), TENSOR(weights, IN | OPTIONAL, "f32", "t k"),
                 TENSOR(dx, OUT, "T", "p n", .terms = "1"),
                 TENSOR(dweights, OUT | OPTIONAL, "f32", "t k", .terms = "n/8 + 12") },
    .types = { "T=f32 O=f32", "T=bf16 O=bf16|f32", "T=f16 O=f16|f32" },
    .flops = "2*t*k*n",
    .integers_exact = true,
    .sizes = { "t: 1 0 2 33 200", "n: 1 0 3 8 31 64 257 1030", "p: 1 0 2 7 33 300", "k: 1 2 0 8" },
    .cases = { "mixtral: T=bf16 O=bf16 p=8192 n=4096 t=4096 k=2 +weights +dweights",
               "qwen3: T=bf16 O=bf16 p=32768 n=2048 t=4096 k=8 +weights +dweights" },
    .reference = reference,
};
