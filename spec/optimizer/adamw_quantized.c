/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_quantized: the table and the reference. */
#include <math.h>

#include <trine/optimizer.h>

#include "by_chance.h"
#include "dynamic_codes.h"

#define ARGS trine_adamw_quantized_args

/* What f32 makes of a product and of a sum of its numbers: float64 has the product exactly, and more than twice the
 * digits that a sum needs to be rounded twice as if once. */
static double times(double a, double b) { return (float)(a * b); }
static double plus(double a, double b) { return (float)(a + b); }

/* The nearest value's place; of two that are as near the first. */
static int nearest(double x, const float *value, int count) {
    int best = 0;
    for (int i = 1; i < count; i++)
        if (fabs(x - (double)value[i]) < fabs(x - (double)value[best])) best = i;
    return best;
}

typedef struct moments {
    double m[DYNAMIC_BLOCK], v[DYNAMIC_BLOCK], m_most, v_most;
} moments;

/* Codes of `count` elements; where a largest value is 0, Inf or NaN those of 0. */
static void encode(const dynamic_codes *c, const moments *a, int64_t count, double *m, double *v) {
    for (int64_t i = 0; i < count; i++) {
        const double x = (float)(fabs(a->m[i]) / a->m_most), y = (float)(a->v[i] / a->v_most);
        const bool negative = a->m[i] < 0;
        const int k = nearest(x, c->positive, DYNAMIC_POSITIVE - negative);
        m[i] = a->m_most > 0 && a->m_most < INFINITY ? DYNAMIC_ZERO + (negative ? -k : k) : DYNAMIC_ZERO;
        v[i] = a->v_most > 0 && a->v_most < INFINITY ? nearest(y, c->value, DYNAMIC_UNSIGNED) : 0;
    }
}

/* NaN if either is. */
static double larger(double a, double b) { return a != a || a >= b ? a : b; }

typedef struct step_scalars {
    double rate, root, decay, eps;
} step_scalars;

/* Bounds, with u = 2^-24. m' and v' are what f32 makes of them, each operation rounded by itself, and so are codes and
 * largest values, whose quotients are rounded once: all exact.
 *
 * param: lr/(1-b1^t), 1/sqrt(1-b2^t) and lr*wd are computed in float64 and rounded once to f32 (1u each). Relative to
 * step*m'/D with D = sqrt(v')/sqrt(1-b2^t) + eps: sqrt to 2 ulp 4u, the constant 1u and the division or product 4u, eps
 * 1u, the division to 2 ulp 4u, step 2u: 16u, within 20u. The decay and the last difference are 4u of |p|(1 + lr wd);
 * that difference is also 1u of the step: 24u with a sixth of the former. copy is rounded from the f32 result, not from
 * param. */
static void put_param(trine_ref *ref, int64_t i, const step_scalars *s, double m, double v) {
    double *param = trine_ref_value(ref, "param"), *copy = trine_ref_value(ref, "copy");
    const double p = param[i], denominator = sqrt(v) / s->root + s->eps, largest = trine_largest(TRINE_F32);
    param[i] = (p - s->decay * p) - s->rate * (m / denominator);
    if (copy) copy[i] = param[i];
    if (!isfinite(param[i])) return;
    const double p_abs = fabs(p) * (1 + s->decay), step = fabs(s->rate * m / denominator);
    const bool overflows = denominator < trine_smallest_normal(TRINE_F32) || s->rate > largest || s->decay > largest ||
                           fabs(m) / denominator > largest || denominator > largest || step > largest ||
                           p_abs > largest;
    const double magnitude = overflows ? INFINITY : step + p_abs / 6,
                 slack = overflows ? 0 : 0x1p-147 * (1 + s->rate) * (1 + 1 / denominator);
    trine_ref_magnitude(ref, "param")[i] = magnitude;
    trine_ref_slack(ref, "param")[i] = slack;
    if (!copy) return;
    trine_ref_magnitude(ref, "copy")[i] = magnitude;
    trine_ref_slack(ref, "copy")[i] = slack;
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n");
    const double *grad = trine_ref_value(ref, "grad"), *grad_scale = trine_ref_value(ref, "grad_scale"),
                 *told_lr = trine_ref_value(ref, "lr_tensor"), *told_step = trine_ref_value(ref, "step_tensor"),
                 *found_inf = trine_ref_value(ref, "found_inf");
    double *m = trine_ref_value(ref, "m"), *v = trine_ref_value(ref, "v"), *m_most = trine_ref_value(ref, "m_most"),
           *v_most = trine_ref_value(ref, "v_most"), *copy = trine_ref_value(ref, "copy");
    const double b1 = args->beta1, b2 = args->beta2, rest1 = (float)(1 - b1), rest2 = (float)(1 - b2);
    const double t = told_step ? told_step[0] : (double)args->step, lr = told_lr ? told_lr[0] : args->lr;
    const step_scalars s = { lr / -expm1(t * log(b1)), sqrt(-expm1(t * log(b2))), lr * args->weight_decay, args->eps };
    if (found_inf && found_inf[0] != 0) {
        for (int64_t i = 0; copy && i < n; i++) copy[i] = trine_ref_value(ref, "param")[i];
        return;
    }
    dynamic_codes codes;
    dynamic_fill(&codes);
    for (int64_t first = 0; first < n; first += DYNAMIC_BLOCK) {
        const int64_t block = first / DYNAMIC_BLOCK, count = n - first < DYNAMIC_BLOCK ? n - first : DYNAMIC_BLOCK;
        moments a = { .m_most = 0 };
        for (int64_t i = 0; i < count; i++) {
            const int code = (int)m[first + i] - DYNAMIC_ZERO;
            const double value = code < 0 ? -codes.positive[-code] : codes.positive[code];
            const double g = times(grad[first + i], grad_scale ? grad_scale[0] : 1);
            a.m[i] = plus(times(b1, times(value, m_most[block])), times(rest1, g));
            a.v[i] = plus(times(b2, times(codes.value[(int)v[first + i]], v_most[block])), times(rest2, times(g, g)));
            a.m_most = larger(a.m_most, fabs(a.m[i]));
            a.v_most = larger(a.v_most, a.v[i]);
            put_param(ref, first + i, &s, a.m[i], a.v[i]);
        }
        m_most[block] = a.m_most;
        v_most[block] = a.v_most;
        encode(&codes, &a, count, m + first, v + first);
    }
    if (args->stochastic) by_chance(ref, n, 24, args->seed, args->stream);
}

const trine_spec trine_spec_adamw_quantized = {
    SPEC(adamw_quantized),
    .summary = "AdamW step with moments in codes of 8 bits, by blocks of 256",
    .formula = "g = grad_scale grad; m' = b1 signed_value[m] m_most + (1-b1) g; v' = b2 unsigned_value[v] v_most + "
               "(1-b2) g^2, each operation rounded to f32; p = p - lr wd p - lr/(1-b1^t) m' / (sqrt(v')/sqrt(1-b2^t) + "
               "eps); copy = p; param of bf16 may be rounded by chance; m_most = max |m'|, v_most = max v' of each 256 "
               "elements, what is behind them stays; m, "
               "v = the codes whose values "
               "are nearest to m'/m_most and v'/v_most; where found_inf is not 0 param and state stay as they are",
    .source = "Dettmers et al. 2022, section 2; Loshchilov and Hutter 2019, algorithm 2",
    .tensors = { TENSOR(param, IN | OUT, "T", "n", .terms = "24"), TENSOR(grad, IN, "G", "n"),
                 TENSOR(m, IN | OUT | EXACT, "u8", "n"), TENSOR(v, IN | OUT | EXACT, "u8", "n"),
                 TENSOR(m_most, IN | OUT | EXACT, "f32", "k", .fill = "positive"),
                 TENSOR(v_most, IN | OUT | EXACT, "f32", "k", .fill = "positive"),
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
    .types = { "T=f32|bf16|f16 G=f32|bf16|f16 C=bf16|f16" },
    .require = { "philox instead of seed", "lr_tensor instead of lr", "step_tensor instead of step", "n <= 256*k" },
    .flops = "30*n",
    .sizes = { "n: 0 1 7 31 255 256 257 1000 4097 100003", "k: 400 0 1 2 17 391" },
    .cases = { "f32: T=f32 G=f32 C=bf16 n=16777216 k=65536 step=10 lr=0.001",
               "mixed: T=f32 G=bf16 C=bf16 n=16777216 k=65536 step=10 lr=0.001 +copy",
               "bf16: T=bf16 G=bf16 C=bf16 n=33554432 k=131072 step=10 lr=0.001" },
    .reference = reference,
};
