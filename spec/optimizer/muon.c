/* SPDX-License-Identifier: Apache-2.0 */
/* muon: the table and the reference. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trine/optimizer.h>

#include "by_chance.h"

#define ARGS trine_muon_args

/* Bounds, with u = 2^-24, |.| the Frobenius norm, v the roundoff of what x and s are kept in, and p(t) = a t + b t^3 +
 * c t^5.
 *
 * moment: momentum m is rounded as a product and in the sum, (1-momentum) g as a constant besides, and g = grad
 * grad_scale: 4u of both. u is off by that, and by 4u of its own terms. Dividing by the norm, a sum in f64, is
 * off by 8u: the coefficient, its product, the constant 1/eps, its product, and what is rounded twice. Since
 * |u/max(|u|, eps)| changes by at most 2|du|/max(|u|, eps), x is off by d0 = 2|du|/max(|u|, eps) + (8u + v)|x|.
 *
 * A step applies p to the singular values. Its derivative has, in the Frobenius norm, the largest divided difference of
 * p as an odd function for its own norm (Noferini 2017, for generalized matrix functions), so at most L = max |p'| on
 * [0, S], S bounding the singular values that are met. A step's own errors, for x of r rows, q columns and norm X:
 *     s: e1 = (q + 4) w u X^2 + v (S X + ..), w = 2.25 where units multiply bf16, else 1 (spec/matmul/element.h),
 *     b s + c s^2: e2 = |b| e1 + |c| (2 S^2 + e1) e1 + o + v ((|b| + |c| (S^2 + e1)) |s| + o), o = (r + 4) w u (|c|
 *       |s|^2 + |b| |s|),
 *     x: e3 = S e2 + ((r + 4) w u + v) (|b s + c s^2| + |a|) X,
 * where |s| <= S X + e1. So d' = L d + e3, with S and X taken as large as d may make them. What underflows is lost r q
 * 2^-125 times. Single elements are off by no more than the norm.
 *
 * param: the decayed param and lr scale x are rounded as constants, products and in the sum: 4u of both; lr scale d
 * besides. copy is rounded from the f32 result, not from param. */
typedef struct iteration {
    int64_t r, q;
    double a, b, c, v, w;
    double *x, *s, *t; /* x: r q; s, t: r r */
    double off, most;  /* of x: d, and S */
    bool lost;         /* Inf or NaN is met: all of x is NaN */
} iteration;

static double polynomial(const iteration *it, double t) { return t * (it->a + t * t * (it->b + t * t * it->c)); }
static double slope(const iteration *it, double t) { return it->a + t * t * (3 * it->b + t * t * 5 * it->c); }

/* The largest |p| on [0, most]: at its end, or where the slope is 0. */
static double largest_value(const iteration *it, double most) {
    double largest = fabs(polynomial(it, most));
    const double A = 5 * it->c, B = 3 * it->b, root = B * B - 4 * A * it->a;
    for (int i = 0; i < 2 && root >= 0; i++) {
        const double square = A != 0 ? (-B + (i ? 1 : -1) * sqrt(root)) / (2 * A) : -it->a / B;
        if (square > 0 && square < most * most) largest = fmax(largest, fabs(polynomial(it, sqrt(square))));
    }
    return largest;
}

static double largest_slope(const iteration *it, double most) {
    double largest = fmax(fabs(slope(it, most)), fabs(it->a));
    const double square = -3 * it->b / (10 * it->c);
    if (square > 0 && square < most * most) largest = fmax(largest, fabs(slope(it, sqrt(square))));
    return largest;
}

static double norm(const double *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static void error_of_step(iteration *it) {
    const double u = 0x1p-24, S = it->most + it->off, X = norm(it->x, it->r * it->q) + it->off,
                 deep = (double)(it->q + 4) * it->w * u, flat = (double)(it->r + 4) * it->w * u, v = it->v,
                 b = fabs(it->b), c = fabs(it->c);
    const double first = deep * X * X, e1 = first + v * (S * X + first), size = S * X + e1,
                 own = flat * (c * size * size + b * size), both = (b + c * (S * S + e1)) * size + own,
                 e2 = b * e1 + c * (2 * S * S + e1) * e1 + own + v * both,
                 e3 = S * e2 + (flat + v) * (1 + v) * (both + e2 + fabs(it->a)) * X;
    it->off = largest_slope(it, S) * it->off + e3 + (double)(it->r * it->q) * 0x1p-125 * (1 + b + c) * (1 + X);
    it->most = largest_value(it, it->most);
}

static void step(iteration *it) {
    const int64_t r = it->r, q = it->q;
    error_of_step(it);
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < r; j++) {
            double sum = 0;
            for (int64_t l = 0; l < q; l++) sum += it->x[i * q + l] * it->x[j * q + l];
            it->s[i * r + j] = sum;
        }
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < r; j++) {
            double sum = 0;
            for (int64_t l = 0; l < r; l++) sum += it->s[i * r + l] * it->s[l * r + j];
            it->t[i * r + j] = it->b * it->s[i * r + j] + it->c * sum;
        }
    for (int64_t j = 0; j < q; j++) {
        for (int64_t i = 0; i < r; i++) {
            double sum = it->a * it->x[i * q + j];
            for (int64_t l = 0; l < r; l++) sum += it->t[i * r + l] * it->x[l * q + j];
            it->s[i] = sum; /* a column at a time, s being done with */
        }
        for (int64_t i = 0; i < r; i++) it->x[i * q + j] = it->s[i];
    }
}

/* The moment, and x before the first step: its element (i, j), or (j, i) where there are more rows than columns. */
static void begin(trine_ref *ref, iteration *it, bool turned) {
    const ARGS *args = ref->args;
    const int64_t n = trine_ref_dim(ref, "n"), count = it->r * it->q;
    const double u = 0x1p-24, mu = args->momentum, *grad = trine_ref_value(ref, "grad"),
                 *grad_scale = trine_ref_value(ref, "grad_scale");
    double *moment = trine_ref_value(ref, "moment"), changed = 0;
    bool astray = false;
    for (int64_t k = 0; k < count; k++) {
        const double whole = grad_scale ? grad[k] * grad_scale[0] : grad[k], g = (1 - mu) * whole, m = mu * moment[k],
                     size = fabs(g) + fabs(m), largest = trine_largest(TRINE_F32) / 2;
        const bool wide = isfinite(size) && !(size < largest && fabs(whole) < largest);
        const bool nesterov = args->update == TRINE_MUON_NESTEROV;
        moment[k] = m + g;
        if (isfinite(moment[k]) || isfinite(size)) {
            trine_ref_magnitude(ref, "moment")[k] = wide ? INFINITY : size;
            trine_ref_slack(ref, "moment")[k] = 0x1p-148;
        }
        const double at = nesterov ? g + mu * moment[k] : moment[k],
                     terms = nesterov ? fabs(g) + mu * fabs(moment[k]) : fabs(moment[k]),
                     off = 4 * u * size * (nesterov ? mu : 1) + 4 * u * terms + 0x1p-125;
        it->x[turned ? k % n * it->q + k / n : k] = at;
        changed += off * off;
        astray |= wide;
    }
    const double length = norm(it->x, count), divisor = length > args->eps ? length : args->eps;
    for (int64_t k = 0; k < count; k++) it->x[k] /= isnan(length) ? length : divisor;
    const double size = norm(it->x, count);
    it->off = 2 * sqrt(changed) / divisor + (8 * u + it->v) * size +
              sqrt((double)count) * 0x1p-125 * (1 + 1 / (double)args->eps);
    it->most = fmin(size, 1);
    it->lost = !isfinite(length);
    if (astray || args->eps / length < 0x1p-125) it->off = INFINITY;
}

static void put(trine_ref *ref, const iteration *it, bool turned, double m, double n) {
    const ARGS *args = ref->args;
    const double scale = args->adjust == TRINE_MUON_UNSCALED    ? 1
                         : args->adjust == TRINE_MUON_MATCH_RMS ? 0.2 * sqrt(fmax(m, n))
                                                                : sqrt(fmax(1, m / n));
    const double *told_lr = trine_ref_value(ref, "lr_tensor"), lr = told_lr ? told_lr[0] : args->lr;
    const double rate = lr * scale, decay = lr * args->weight_decay, v = trine_unit_roundoff(trine_ref_type(ref, "T")),
                 largest = trine_largest(TRINE_F32);
    double *param = trine_ref_value(ref, "param"), *copy = trine_ref_value(ref, "copy");
    for (int64_t k = 0; k < it->r * it->q; k++) {
        const double x = it->x[turned ? k % (int64_t)n * it->q + k / (int64_t)n : k], p = param[k];
        param[k] = (p - decay * p) - rate * x;
        const double size = trine_finite_abs(p) * (1 + decay) + rate * (trine_finite_abs(x) + it->off);
        const bool unsure = !it->lost && !(size < largest && decay < largest && rate < largest && it->off < 0x1p60);
        if (unsure && isnan(param[k]) && !isnan(p)) param[k] = 0;
        if (copy) copy[k] = param[k];
        if (!isfinite(param[k]) && !unsure) continue;
        const double slack = unsure ? 0 : rate * it->off + 0x1p-147 * (1 + rate);
        trine_ref_magnitude(ref, "param")[k] = unsure ? INFINITY : size;
        trine_ref_slack(ref, "param")[k] = slack * (1 + v);
        if (!copy) continue;
        trine_ref_magnitude(ref, "copy")[k] = unsure ? INFINITY : size;
        trine_ref_slack(ref, "copy")[k] = slack * (1 + trine_unit_roundoff(trine_ref_type(ref, "C")));
    }
    if (args->stochastic) by_chance(ref, it->r * it->q, 4, args->seed, args->stream);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n");
    const bool turned = m > n, narrow = args->precision == TRINE_MUON_BF16;
    const double *found_inf = trine_ref_value(ref, "found_inf");
    double *copy = trine_ref_value(ref, "copy");
    if (found_inf && found_inf[0] != 0) {
        for (int64_t k = 0; copy && k < m * n; k++) copy[k] = trine_ref_value(ref, "param")[k];
        return;
    }
    iteration it = { .r = turned ? n : m,
                     .q = turned ? m : n,
                     .a = args->ns_a + 0.0,
                     .b = args->ns_b + 0.0,
                     .c = args->ns_c + 0.0,
                     .v = trine_unit_roundoff(narrow ? TRINE_BF16 : TRINE_F32),
                     .w = narrow ? 2.25 : 1 };
    it.x = malloc(sizeof *it.x * (size_t)(it.r * it.q + 2 * it.r * it.r + 1));
    if (it.x == NULL) abort();
    it.s = it.x + it.r * it.q;
    it.t = it.s + it.r * it.r;
    begin(ref, &it, turned);
    for (int32_t i = 0; i < args->ns_steps; i++) step(&it);
    put(ref, &it, turned, (double)m, (double)n);
    free(it.x);
}

const trine_spec trine_spec_muon = {
    SPEC(muon),
    .summary = "Muon step: the moment of a matrix made nearly orthogonal",
    .formula = "g = grad_scale grad; moment = mu moment + (1-mu) g; u = (1-mu) g + mu moment, or moment; x = u / "
               "max(|u|, eps); ns_steps "
               "times x = ns_a x + (ns_b s + ns_c s^2) x, s = x x^T; p = p - lr wd p - lr scale x; copy = p; scale = "
               "sqrt(max(1, m/n)), or sqrt(max(m, n))/5, or 1; param of bf16 may be rounded by chance; where "
               "found_inf is not 0 param and moment stay as they are",
    .source = "Jordan et al. 2024 (Muon); torch.optim.Muon; Liu et al. 2025",
    .tensors = { TENSOR(param, IN | OUT, "T", "m n", .terms = "4"), TENSOR(grad, IN, "G", "m n"),
                 TENSOR(moment, IN | OUT, "S", "m n", .terms = "4"),
                 TENSOR(copy, OUT | OPTIONAL, "C", "m n", .terms = "4"), TENSOR(grad_scale, IN | OPTIONAL, "f32", "1"),
                 TENSOR(lr_tensor, IN | OPTIONAL, "f32", "1", .fill = "positive"),
                 TENSOR(found_inf, IN | OPTIONAL, "f32", "1", .fill = "flag"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2") },
    .params = { PARAM(lr, F32, .values = "1e-2 0 0.5", .min = 0, .doc = "learning rate"),
                PARAM(momentum, F32, .values = "0.95 0.5 -0", .fallback = 0.95, .min = 0, .max = 0x1.fffffep-1,
                      .doc = "mu: decay of moment per step"),
                PARAM(weight_decay, F32, .values = "0 0.1", .min = 0, .doc = "wd: decay of param per step and lr"),
                PARAM(eps, F32, .values = "1e-7 0.5", .fallback = 1e-7, .min = 1e-20, .doc = "least norm"),
                PARAM(ns_a, F32, .values = "3.4445 1.5", .fallback = 3.4445, .doc = "factor of x in a step"),
                PARAM(ns_b, F32, .values = "-4.775 -0.5", .fallback = -4.775, .doc = "factor of s x"),
                PARAM(ns_c, F32, .values = "2.0315 -0", .fallback = 2.0315, .doc = "factor of s^2 x"),
                PARAM(ns_steps, I32, .values = "5 1 2", .fallback = 5, .min = 0, .max = 100,
                      .doc = "steps of the iteration"),
                PARAM(update, ENUM, .values = "nesterov moment", .doc = "what is made orthogonal"),
                PARAM(adjust, ENUM, .values = "original match_rms unscaled", .doc = "the scale"),
                PARAM(precision, ENUM, .values = "full bf16", .doc = "what x and s are kept in"), BY_CHANCE_PARAMS },
    .require = { "philox instead of seed", "lr_tensor instead of lr" },
    .types = { "T=f32|bf16|f16 G=f32|bf16|f16 S=f32|bf16 C=bf16|f16" },
    .flops = "15*m*n*min(m,n) + 5*min(m,n)*min(m,n)*min(m,n) + 5*m*n",
    .sizes = { "m: 1 0 2 3 8 17 40", "n: 1 0 2 4 7 16 33 64" },
    .cases = { "llama3-8b query: T=f32 G=bf16 S=f32 C=bf16 m=4096 n=4096 lr=0.02 precision=bf16 +copy",
               "llama3-8b key: T=f32 G=bf16 S=f32 C=bf16 m=1024 n=4096 lr=0.02 precision=bf16 +copy",
               "llama3-8b gate: T=f32 G=bf16 S=f32 C=bf16 m=14336 n=4096 lr=0.02 precision=bf16 +copy",
               "llama3-8b down: T=bf16 G=bf16 S=bf16 C=bf16 m=4096 n=14336 lr=0.02 precision=bf16",
               "gpt2 up f32: T=f32 G=f32 S=f32 C=bf16 m=3072 n=768 lr=0.02" },
    .reference = reference,
};
