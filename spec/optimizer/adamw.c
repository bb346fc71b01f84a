/* SPDX-License-Identifier: Apache-2.0 */
/* adamw: the table and the reference. */
#include <math.h>

#include <trine/optimizer.h>

#include "by_chance.h"

#define ARGS trine_adamw_args

/* Bounds, with u = 2^-24. The scalars 1-b1, 1-b2, lr/(1-b1^t), 1/sqrt(1-b2^t) and lr*wd are computed in float64 and
 * rounded once to f32 (1u each).
 *
 * They are so where lr and t come in tensors, too. A step that found_inf skips changes nothing: copy is then param,
 * rounded once.
 *
 * m: b1*m is rounded as a product and in the sum (2u); (1-b1)*g as a constant, g = grad*grad_scale, a product and in
 * the sum (4u): 4u of M = b1|m| + (1-b1)|g|. v: b2*v 2u; (1-b2)*g*g has g twice, the square, the constant, the product
 * and the sum (6u): 6u of V = b2|v| + (1-b2)g^2.
 *    Infinite where g^2 is beyond f32. Underflow of products is worth 2^-147.
 * param: what the error of v does to D = sqrt(v)/sqrt(1-b2^t) + eps is bounded by putting v - 6u V - 2^-147 in its
 * place: D_low. Besides, relative to
 *    step*M/D: m 4u, sqrt to 2 ulp 4u, the constant 1u and the division or product 4u, eps 1u, the division to 2 ulp
 *      4u, step 2u: 20u. The decay, as
 *    p - (lr wd)p or p(1 - lr wd), and the last difference are 4u of |p|(1 + lr wd); that difference is also 1u of
 *      step*M/D: 24u with a sixth of the former. m and v enter param as computed in f32, before they are rounded to the
 *      type of the state; and copy is rounded from the f32 result, not from param. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n");
    const double *grad = trine_ref_value(ref, "grad"), *grad_scale = trine_ref_value(ref, "grad_scale");
    double *param = trine_ref_value(ref, "param"), *m = trine_ref_value(ref, "m"), *v = trine_ref_value(ref, "v"),
           *copy = trine_ref_value(ref, "copy");
    const double u = trine_unit_roundoff(TRINE_F32), largest = trine_largest(TRINE_F32), tiny = 0x1p-147;
    const double *told_lr = trine_ref_value(ref, "lr_tensor"), *told_step = trine_ref_value(ref, "step_tensor"),
                 *found_inf = trine_ref_value(ref, "found_inf");
    const double b1 = args->beta1, b2 = args->beta2, t = told_step ? told_step[0] : (double)args->step,
                 lr = told_lr ? told_lr[0] : args->lr;
    const double step = lr / -expm1(t * log(b1)), root = sqrt(-expm1(t * log(b2))), decay = lr * args->weight_decay;
    if (found_inf && found_inf[0] != 0) {
        for (int64_t i = 0; copy && i < n; i++) copy[i] = param[i];
        return;
    }

    for (int64_t i = 0; i < n; i++) {
        const double g = grad_scale ? grad[i] * grad_scale[0] : grad[i], p = param[i];
        const bool negative = v[i] < 0;
        const double m_abs = b1 * fabs(m[i]) + (1 - b1) * fabs(g), v_abs = b2 * fabs(v[i]) + (1 - b2) * g * g,
                     p_abs = fabs(p) * (1 + decay);
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        const double denominator = sqrt(v[i]) / root + args->eps;
        param[i] = (p - decay * p) - step * (m[i] / denominator);
        if (copy) copy[i] = param[i];

        const double v_low = v[i] - 6 * u * v_abs - tiny, low = sqrt(fmax(v_low, 0)) / root + args->eps;
        const bool m_overflows = fabs(g) > largest, v_overflows = m_overflows || g * g > largest;
        const bool p_overflows = v_overflows || (negative && v_low < 0) || low == 0 || step > largest ||
                                 step * m_abs > largest || m_abs / low > largest || step * m_abs / low > largest ||
                                 decay > largest || p_abs > largest;
        const bool finite_overflow = isfinite(g) && v_overflows; /* what an Inf elsewhere may meet */
        const double p_magnitude = p_overflows ? INFINITY : step * m_abs / denominator + p_abs / 6;
        const double p_slack =
            p_overflows ? 0 : step * m_abs * (1 / low - 1 / denominator) + tiny * (1 + step) * (1 + 1 / low);
        if (isfinite(m[i]) || finite_overflow) {
            trine_ref_magnitude(ref, "m")[i] = m_overflows ? INFINITY : m_abs;
            trine_ref_slack(ref, "m")[i] = tiny;
        }
        if (isfinite(v[i]) || finite_overflow) {
            trine_ref_magnitude(ref, "v")[i] = v_overflows ? INFINITY : v_abs;
            trine_ref_slack(ref, "v")[i] = tiny;
        }
        if (isfinite(param[i]) || finite_overflow) {
            trine_ref_magnitude(ref, "param")[i] = p_magnitude;
            trine_ref_slack(ref, "param")[i] = p_slack;
            if (copy) {
                trine_ref_magnitude(ref, "copy")[i] = p_magnitude;
                trine_ref_slack(ref, "copy")[i] = p_slack;
            }
        }
    }
    if (args->stochastic) by_chance(ref, n, 24, args->seed, args->stream);
}

const trine_spec trine_spec_adamw = {
    SPEC(adamw),
    .summary = "AdamW step: decoupled weight decay, bias correction before eps",
    .formula = "g = grad_scale grad; p' = p - lr wd p; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; "
               "p = p' - lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps); copy = p; param of bf16 may be rounded by "
               "chance; where found_inf is not 0 param, m and v "
               "stay as they are",
    .source = "Loshchilov and Hutter 2019, algorithm 2",
    .tensors = { TENSOR(param, IN | OUT, "T", "n", .terms = "24"), TENSOR(grad, IN, "G", "n"),
                 TENSOR(m, IN | OUT, "S", "n", .terms = "4"),
                 TENSOR(v, IN | OUT, "S", "n", .fill = "positive", .terms = "6"),
                 TENSOR(copy, OUT | OPTIONAL, "C", "n", .terms = "24"), TENSOR(grad_scale, IN | OPTIONAL, "f32", "1"),
                 TENSOR(lr_tensor, IN | OPTIONAL, "f32", "1", .fill = "positive"),
                 TENSOR(step_tensor, IN | OPTIONAL, "i64", "1", .fill = "positive"),
                 TENSOR(found_inf, IN | OPTIONAL, "f32", "1", .fill = "flag"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2") },
    .params = { PARAM(lr, F32, .values = "1e-3 0 0.1", .min = 0, .doc = "learning rate"),
                PARAM(beta1, F32, .values = "0.9 0.5", .fallback = 0.9, .min = 0, .max = 0x1.fffffep-1,
                      .doc = "decay of m per step"),
                PARAM(beta2, F32, .values = "0.999 0.95", .fallback = 0.999, .min = 0, .max = 0x1.fffffep-1,
                      .doc = "decay of v per step"),
                PARAM(eps, F32, .values = "1e-8 1e-3", .fallback = 1e-8, .min = 0,
                      .doc = "added to sqrt(v)/sqrt(1-b2^t)"),
                PARAM(weight_decay, F32, .values = "0 0.01 0.1", .min = 0, .doc = "wd: decay of param per step and lr"),
                PARAM(step, I64, .values = "1 2 1000 1000000", .min = 1, .doc = "t: number of this step, from 1"),
                BY_CHANCE_PARAMS },
    .types = { "T=f32|bf16|f16 G=f32|bf16|f16 S=f32|bf16 C=bf16|f16" },
    .require = { "philox instead of seed", "lr_tensor instead of lr", "step_tensor instead of step" },
    .flops = "14*n",
    .independent = "n",
    .sizes = { "n: 0 1 7 8 31 64 1000 4097 100003" },
    .cases = { "f32: T=f32 G=f32 S=f32 C=bf16 n=16777216 step=10 lr=0.001",
               "mixed: T=f32 G=bf16 S=f32 C=bf16 n=16777216 step=10 lr=0.001 +copy",
               "bf16 state: T=bf16 G=bf16 S=bf16 C=bf16 n=33554432 step=10 lr=0.001",
               "scaled: T=f32 G=f32 S=f32 C=bf16 n=16777216 step=10 lr=0.001 +grad_scale" },
    .reference = reference,
};
