/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_sharded: the table and the reference. */
#include <math.h>

#include <trine/comm.h>

#include "spec/optimizer/by_chance.h"

#define ARGS trine_adamw_sharded_args

/* The bounds are adamw's (spec/optimizer/adamw.c), with u = 2^-24. The sum over ranks and its product by grad_scale are
 * f32's, in one order and rounded once each, so that they are here what they are everywhere, and x is exact. Where the
 * norm limits them, g = coefficient x has an error of its own: the sum of n squares in f64 is off by (n - 1)w of
 * itself, w = 2^-53, the root halves that and adds w, the quotient adds w, and f32 rounds once, to 2^-150 where it is
 * subnormal: g is off by g_off = (u + (n + 4)w)|g| + 2^-150|x|. So m is off by (1-b1) g_off besides, and v by
 * (1-b2) g_off (2|g| + g_off), which D_low has on top; a step by step (1-b1) g_off/D_low. An x that is Inf makes the
 * norm Inf, the coefficient 0, and itself NaN. */
typedef struct gradient {
    double value, off;
} gradient;

typedef struct limit {
    double norm, coefficient, relative, absolute; /* of the errors of a product by the coefficient */
} limit;

static float times(float a, float b) {
    const volatile float product = a * b;
    return product;
}

/* Of all ranks' gradients of an element, times the scale of the rank whose part it is in. */
static double summed(const double *grad, int64_t ranks, int64_t n, const double *scale) {
    float sum = (float)grad[0];
    for (int64_t q = 1; q < ranks; q++) sum = sum + (float)grad[q * n];
    return scale ? times(sum, (float)*scale) : sum;
}

static const double *scale_of(const trine_ref *ref, int64_t rank) {
    const double *scale = trine_ref_value(ref, "grad_scale");
    return scale ? scale + rank : NULL;
}

static limit limit_of(const trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n"), p = trine_ref_dim(ref, "p");
    const double *grad = trine_ref_value(ref, "grad");
    double squares = 0;
    for (int64_t j = 0; j < n; j++) {
        const double x = summed(grad + j, ranks, n, scale_of(ref, j / p));
        squares += x * x;
    }
    const double norm = sqrt(squares), quotient = args->max_norm / norm, relative = 0x1p-24 + (double)(n + 4) * 0x1p-53;
    limit all = { .norm = norm, .coefficient = args->max_norm == 0 || quotient >= 1 ? 1 : quotient };
    if (args->max_norm != 0 && quotient * (1 - relative) < 1) all.relative = relative, all.absolute = 0x1p-150;
    return all;
}

/* The step's scalars, of a rank. */
typedef struct scalars {
    double b1, b2, step, root, decay, eps;
} scalars;

static scalars scalars_of(const trine_ref *ref, int64_t rank) {
    const ARGS *args = ref->args;
    const double *told_lr = trine_ref_value(ref, "lr_tensor"), *told_step = trine_ref_value(ref, "step_tensor");
    const double b1 = args->beta1, b2 = args->beta2, t = told_step ? told_step[rank] : (double)args->step,
                 lr = told_lr ? told_lr[rank] : args->lr;
    return (scalars){ b1, b2, lr / -expm1(t * log(b1)), sqrt(-expm1(t * log(b2))), lr * args->weight_decay, args->eps };
}

/* Element i of the parts. */
static void step_one(trine_ref *ref, int64_t i, const scalars *s, gradient grad) {
    const double u = trine_unit_roundoff(TRINE_F32), largest = trine_largest(TRINE_F32), tiny = 0x1p-147;
    double *param = &trine_ref_value(ref, "param")[i], *m = &trine_ref_value(ref, "m")[i],
           *v = &trine_ref_value(ref, "v")[i];
    const double g = grad.value, p = *param, b1 = s->b1, b2 = s->b2, step = s->step;
    const bool negative = *v < 0;
    const double g_most = fabs(g) + grad.off, m_off = (1 - b1) * grad.off,
                 v_off = (1 - b2) * grad.off * (2 * fabs(g) + grad.off);
    const double m_abs = b1 * fabs(*m) + (1 - b1) * g_most, v_abs = b2 * fabs(*v) + (1 - b2) * g_most * g_most,
                 p_abs = fabs(p) * (1 + s->decay);
    *m = b1 * *m + (1 - b1) * g;
    *v = b2 * *v + (1 - b2) * g * g;
    const double denominator = sqrt(*v) / s->root + s->eps;
    *param = (p - s->decay * p) - step * (*m / denominator);

    const double v_low = *v - 6 * u * v_abs - v_off - tiny, low = sqrt(fmax(v_low, 0)) / s->root + s->eps;
    const bool m_overflows = g_most > largest, v_overflows = m_overflows || g_most * g_most > largest;
    const bool p_overflows = v_overflows || (negative && v_low < 0) || low == 0 || step > largest ||
                             step * m_abs > largest || m_abs / low > largest || step * m_abs / low > largest ||
                             s->decay > largest || p_abs > largest;
    const bool finite_overflow = isfinite(g) && v_overflows; /* what an Inf elsewhere may meet */
    if (isfinite(*m) || finite_overflow) {
        trine_ref_magnitude(ref, "m")[i] = m_overflows ? INFINITY : m_abs;
        trine_ref_slack(ref, "m")[i] = m_off + tiny;
    }
    if (isfinite(*v) || finite_overflow) {
        trine_ref_magnitude(ref, "v")[i] = v_overflows ? INFINITY : v_abs;
        trine_ref_slack(ref, "v")[i] = v_off + tiny;
    }
    if (isfinite(*param) || finite_overflow) {
        trine_ref_magnitude(ref, "param")[i] = p_overflows ? INFINITY : step * m_abs / denominator + p_abs / 6;
        trine_ref_slack(ref, "param")[i] = p_overflows ? 0
                                                       : step * m_abs * (1 / low - 1 / denominator) +
                                                             step * m_off / low + tiny * (1 + step) * (1 + 1 / low);
    }
}

/* Each rank's part has a stream of its own. */
static void round_by_chance(trine_ref *ref, int64_t rank, int64_t i) {
    const ARGS *args = ref->args;
    const int64_t p = trine_ref_dim(ref, "p");
    const double *philox = trine_ref_value(ref, "philox");
    const uint64_t seed = philox ? (uint64_t)(int64_t)philox[2 * rank] : args->seed,
                   stream = args->stream + (philox ? (uint64_t)(int64_t)philox[2 * rank + 1] : 0);
    by_chance_one(&trine_ref_value(ref, "param")[i], &trine_ref_magnitude(ref, "param")[i],
                  &trine_ref_slack(ref, "param")[i], 24,
                  by_chance_bits(seed, stream + ((uint64_t)rank << 56), (uint64_t)(i - rank * p)));
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n"), p = trine_ref_dim(ref, "p");
    const double *grad = trine_ref_value(ref, "grad"), *found_inf = trine_ref_value(ref, "found_inf");
    const double *param = trine_ref_value(ref, "param");
    double *copy = trine_ref_value(ref, "copy"), *norm = trine_ref_value(ref, "norm");
    const bool by_chance = args->stochastic && trine_ref_type(ref, "T") == TRINE_BF16;
    const limit all = limit_of(ref);
    bool skipped = false;
    for (int64_t r = 0; r < ranks; r++) {
        skipped = skipped || (found_inf && found_inf[r] != 0);
        if (norm) norm[r] = trine_ref_magnitude(ref, "norm")[r] = all.norm;
    }
    for (int64_t j = 0; j < n; j++) {
        const int64_t rank = j / p;
        const scalars s = scalars_of(ref, rank);
        const double x = summed(grad + j, ranks, n, scale_of(ref, rank)),
                     g = all.coefficient == 1 ? x : all.coefficient * x;
        if (!skipped) step_one(ref, j, &s, (gradient){ g, all.relative * fabs(g) + all.absolute * fabs(x) });
        if (!skipped && by_chance) round_by_chance(ref, rank, j);
        for (int64_t r = 0; r < ranks; r++) {
            copy[r * n + j] = param[j];
            trine_ref_magnitude(ref, "copy")[r * n + j] = trine_ref_magnitude(ref, "param")[j];
            trine_ref_slack(ref, "copy")[r * n + j] = trine_ref_slack(ref, "param")[j];
        }
    }
}

const trine_spec trine_spec_adamw_sharded = {
    SPEC(adamw_sharded),
    .summary = "AdamW step of gradients that all ranks add up, with the optimizer's state in parts",
    .formula =
        "x[j] = grad_scale (((grad[0,j] + grad[1,j]) + grad[2,j]) + ...); norm = sqrt(sum_j x[j]^2); g = min(1, "
        "max_norm/norm) x, x if max_norm is left out; of j = q p + i rank q has p[j] = param[q,i], m, v: "
        "p' = p - lr wd p; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; "
        "p = p' - lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps); copy[r,j] = p[j] for every rank r; param of bf16 "
        "may be rounded by chance; where found_inf of a rank is not 0 param, m and v stay as they are",
    .source = "Rajbhandari et al. 2020 (ZeRO), section 5.1; Loshchilov and Hutter 2019, algorithm 2",
    .tensors = { TENSOR(param, IN | OUT, "T", "ranks p", .terms = "24"), TENSOR(grad, IN, "G", "ranks n"),
                 TENSOR(m, IN | OUT, "S", "ranks p", .terms = "4"),
                 TENSOR(v, IN | OUT, "S", "ranks p", .fill = "positive", .terms = "6"),
                 TENSOR(copy, OUT, "C", "ranks n", .terms = "24"), TENSOR(grad_scale, IN | OPTIONAL, "f32", "ranks 1"),
                 TENSOR(lr_tensor, IN | OPTIONAL, "f32", "ranks 1", .fill = "positive"),
                 TENSOR(step_tensor, IN | OPTIONAL, "i64", "ranks 1", .fill = "positive"),
                 TENSOR(found_inf, IN | OPTIONAL, "f32", "ranks 1", .fill = "flag"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "ranks 2"),
                 TENSOR(norm, OUT | OPTIONAL, "f32", "ranks 1", .terms = "n + 2", .accumulate = "f64") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(lr, F32, .values = "1e-3 0 0.1", .min = 0, .doc = "learning rate"),
                PARAM(beta1, F32, .values = "0.9 0.5", .fallback = 0.9, .min = 0, .max = 0x1.fffffep-1,
                      .doc = "decay of m per step"),
                PARAM(beta2, F32, .values = "0.999 0.95", .fallback = 0.999, .min = 0, .max = 0x1.fffffep-1,
                      .doc = "decay of v per step"),
                PARAM(eps, F32, .values = "1e-8 1e-3", .fallback = 1e-8, .min = 0,
                      .doc = "added to sqrt(v)/sqrt(1-b2^t)"),
                PARAM(weight_decay, F32, .values = "0 0.01 0.1", .min = 0, .doc = "wd: decay of param per step and lr"),
                PARAM(max_norm, F32, .values = "1 0 0.01 1e30", .min = 0, .unset = "no limit",
                      .doc = "largest norm of the summed gradients let through"),
                PARAM(step, I64, .values = "1 2 1000 1000000", .min = 1, .doc = "t: number of this step, from 1"),
                BY_CHANCE_PARAMS },
    .types = { "T=f32 G=f32|bf16|f16 S=f32|bf16 C=f32|bf16|f16", "T=bf16 G=f32|bf16|f16 S=f32|bf16 C=bf16",
               "T=f16 G=f32|bf16|f16 S=f32|bf16 C=f16" },
    .require = { "ranks > 0", "ranks <= 64", "n <= ranks*p", "philox instead of seed", "lr_tensor instead of lr",
                 "step_tensor instead of step" },
    .flops = "ranks*n + 14*n",
    .sizes = { "ranks: 2 1 3 4 8", "n: 31 0 1 2 8 130 1000 5000 30000", "p: 16 0 1 7 64 260 1000 5000 16000" },
    .cases = { "f32, 2 ranks: T=f32 G=f32 S=f32 C=f32 ranks=2 n=8388608 p=4194304 step=10 lr=0.001",
               "mixed: T=f32 G=bf16 S=f32 C=bf16 ranks=4 n=8388608 p=2097152 step=10 lr=0.001",
               "mixed, clipped: T=f32 G=bf16 S=f32 C=bf16 ranks=4 n=8388608 p=2097152 step=10 lr=0.001 max_norm=1 "
               "+norm",
               "bf16: T=bf16 G=bf16 S=bf16 C=bf16 ranks=4 n=16777216 p=4194304 step=10 lr=0.001" },
    .reference = reference,
};
