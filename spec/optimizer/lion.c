/* SPDX-License-Identifier: Apache-2.0 */
/* lion: the table and the reference. */
#include <math.h>

#include <trine/optimizer.h>

#include "by_chance.h"

#define ARGS trine_lion_args

/* What f32 makes of a product and of a sum of its numbers: float64 has the product exactly, and more than twice the
 * digits that a sum needs to be rounded twice as if once. */
static double times(double a, double b) { return (float)(a * b); }
static double plus(double a, double b) { return (float)(a + b); }

/* 1, -1, 0 or NaN. */
static double sign(double c) { return isnan(c) ? c : (c > 0) - (c < 0); }

/* Bounds, with u = 2^-24. The sign is that of c in f32, each operation rounded by itself, so it is exact. 1-b1, 1-b2
 * and lr*wd are computed in float64 and rounded once to f32 (1u each).
 *
 * m: b2*m is rounded as a product and in the sum (2u); (1-b2)*g as a constant, g = grad*grad_scale, a product and in
 * the sum (4u): 4u of M = b2|m| + (1-b2)|g|. Infinite where g is beyond f32. Underflow of products is worth 2^-147.
 * param: lr*sign is exact. The decay, as p - (lr wd)p or p(1 - lr wd), is 3u of |p|(1 + lr wd) at most, the last
 * difference 1u of |p|(1 + lr wd) + lr: 4u of that. copy is rounded from the f32 result, not from param. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n");
    const double *grad = trine_ref_value(ref, "grad"), *grad_scale = trine_ref_value(ref, "grad_scale"),
                 *told_lr = trine_ref_value(ref, "lr_tensor"), *found_inf = trine_ref_value(ref, "found_inf");
    double *param = trine_ref_value(ref, "param"), *m = trine_ref_value(ref, "m"), *copy = trine_ref_value(ref, "copy");
    const double largest = trine_largest(TRINE_F32), tiny = 0x1p-147;
    const double b1 = args->beta1, b2 = args->beta2, rest1 = (float)(1 - b1), lr = told_lr ? told_lr[0] : args->lr,
                 decay = lr * args->weight_decay;
    if (found_inf && found_inf[0] != 0) {
        for (int64_t i = 0; copy && i < n; i++) copy[i] = param[i];
        return;
    }

    for (int64_t i = 0; i < n; i++) {
        const double g = grad_scale ? grad[i] * grad_scale[0] : grad[i];
        const double c = plus(times(b1, m[i]), times(rest1, (float)g));
        const double m_abs = b2 * fabs(m[i]) + (1 - b2) * fabs(g), p_abs = fabs(param[i]) * (1 + decay) + lr;
        const bool g_overflows = isfinite(g) && fabs(g) > largest;
        m[i] = b2 * m[i] + (1 - b2) * g;
        param[i] = (param[i] - decay * param[i]) - lr * sign(c);
        if (copy) copy[i] = param[i];

        if (isfinite(m[i]) || g_overflows) {
            trine_ref_magnitude(ref, "m")[i] = g_overflows ? INFINITY : m_abs;
            trine_ref_slack(ref, "m")[i] = tiny;
        }
        if (!isfinite(param[i])) continue;
        const double magnitude = decay > largest || p_abs > largest ? INFINITY : p_abs;
        trine_ref_magnitude(ref, "param")[i] = magnitude;
        trine_ref_slack(ref, "param")[i] = tiny;
        if (!copy) continue;
        trine_ref_magnitude(ref, "copy")[i] = magnitude;
        trine_ref_slack(ref, "copy")[i] = tiny;
    }
    if (args->stochastic) by_chance(ref, n, 4, args->seed, args->stream);
}

const trine_spec trine_spec_lion = {
    SPEC(lion),
    .summary = "Lion step: the sign of an interpolated momentum, decoupled weight decay",
    .formula = "g = grad_scale grad; c = b1 m + (1-b1) g, each operation rounded to f32; p = p - lr wd p - lr sign(c); "
               "m = b2 m + (1-b2) g; copy = p; param of bf16 may be rounded by chance; where found_inf is not 0 param "
               "and m stay as they are",
    .source = "Chen et al. 2023, algorithm 2",
    .tensors = { TENSOR(param, IN | OUT, "T", "n", .terms = "4"), TENSOR(grad, IN, "G", "n"),
                 TENSOR(m, IN | OUT, "S", "n", .terms = "4"), TENSOR(copy, OUT | OPTIONAL, "C", "n", .terms = "4"),
                 TENSOR(grad_scale, IN | OPTIONAL, "f32", "1"),
                 TENSOR(lr_tensor, IN | OPTIONAL, "f32", "1", .fill = "positive"),
                 TENSOR(found_inf, IN | OPTIONAL, "f32", "1", .fill = "flag"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2") },
    .params = { PARAM(lr, F32, .values = "1e-4 0 0.1", .min = 0, .doc = "learning rate"),
                PARAM(beta1, F32, .values = "0.9 0.5", .fallback = 0.9, .min = 0, .max = 0x1.fffffep-1,
                      .doc = "part of m in what the sign is of"),
                PARAM(beta2, F32, .values = "0.99 0.95", .fallback = 0.99, .min = 0, .max = 0x1.fffffep-1,
                      .doc = "decay of m per step"),
                PARAM(weight_decay, F32, .values = "0 0.1 1", .min = 0, .doc = "wd: decay of param per step and lr"),
                BY_CHANCE_PARAMS },
    .types = { "T=f32|bf16|f16 G=f32|bf16|f16 S=f32|bf16 C=bf16|f16" },
    .require = { "philox instead of seed", "lr_tensor instead of lr" },
    .flops = "9*n",
    .independent = "n",
    .sizes = { "n: 0 1 7 8 31 64 1000 4097 100003" },
    .cases = { "f32: T=f32 G=f32 S=f32 C=bf16 n=16777216 lr=0.0001",
               "mixed: T=f32 G=bf16 S=f32 C=bf16 n=16777216 lr=0.0001 +copy",
               "bf16 state: T=bf16 G=bf16 S=bf16 C=bf16 n=33554432 lr=0.0001",
               "scaled: T=f32 G=f32 S=f32 C=bf16 n=16777216 lr=0.0001 +grad_scale" },
    .reference = reference,
};
