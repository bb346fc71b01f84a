/* SPDX-License-Identifier: Apache-2.0 */
/* adafactor: the table and the reference. */
#include <math.h>
#include <stdlib.h>

#include <trine/optimizer.h>

#include "by_chance.h"

#define ARGS trine_adafactor_args

typedef struct adafactor {
    int64_t r, c;
    double w, rate, decay, limit; /* limit: 1/eps1 */
    double *row, *col;            /* 1/sqrt of each one's part of the variance; row: NULL: 1 */
    double *u;
    bool astray; /* f32 may have Inf or lose a part of what all elements depend on */
} adafactor;

/* Is it a number that f32 holds as well as any? */
static bool held(double x) {
    return x == 0 || !isfinite(x) ||
           (fabs(x) >= trine_smallest_normal(TRINE_F32) && fabs(x) <= trine_largest(TRINE_F32));
}

/* As PyTorch's scalars have it, NaN is not larger than a number. */
static double at_least(double least, double x) { return x > least ? x : least; }

/* The variances of rows (or of columns): `mean` of the squares of `count` elements for each of `n`. */
static void put_variances(trine_ref *ref, adafactor *a, const char *name, int64_t n, int64_t count, int64_t step,
                          int64_t each) {
    const double *grad = trine_ref_value(ref, "grad"), *grad_scale = trine_ref_value(ref, "grad_scale");
    double *variance = trine_ref_value(ref, name), *magnitude = trine_ref_magnitude(ref, name);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < count; k++) {
            const double g = grad[i * each + k * step] * (grad_scale ? grad_scale[0] : 1);
            a->astray |= grad_scale && !held(g);
            sum += g * g;
        }
        const double mean = count > 0 ? sum / (double)count : 0, before = variance[i];
        variance[i] = (1 - a->w) * before + a->w * mean;
        magnitude[i] = (1 - a->w) * trine_finite_abs(before) + a->w * trine_finite_abs(mean);
        trine_ref_slack(ref, name)[i] = 0x1p-149;
    }
}

static void find_scales(trine_ref *ref, adafactor *a, double eps1) {
    const double *row_var = trine_ref_value(ref, "row_var"), *col_var = trine_ref_value(ref, "col_var");
    double mean = 0;
    for (int64_t i = 0; row_var && i < a->r; i++) mean += row_var[i] / (double)a->r;
    if (mean <= eps1) mean = eps1;
    for (int64_t i = 0; i < a->r; i++) {
        a->row[i] = row_var ? 1 / sqrt(row_var[i] / mean) : 1;
        a->astray |= !held(a->row[i]);
    }
    for (int64_t j = 0; j < a->c; j++) {
        a->col[j] = 1 / sqrt(col_var[j]);
        a->astray |= !held(a->col[j]);
    }
    a->limit = 1 / eps1;
    a->astray |= !held(a->limit);
}

static void find_updates(trine_ref *ref, adafactor *a, double clip) {
    const double *grad = trine_ref_value(ref, "grad"), *grad_scale = trine_ref_value(ref, "grad_scale");
    const bool factored = trine_ref_value(ref, "row_var") != NULL;
    double sum = 0;
    for (int64_t k = 0; k < a->r * a->c; k++) {
        double scale = factored ? a->row[k / a->c] * a->col[k % a->c] : a->col[k % a->c];
        a->astray |= scale != 0 && fabs(scale) < trine_smallest_normal(TRINE_F32);
        if (scale > a->limit) scale = a->limit;
        const double g = grad_scale ? grad[k] * grad_scale[0] : grad[k];
        a->u[k] = g * scale;
        a->astray |= isfinite(a->u[k]) && fabs(a->u[k]) > trine_largest(TRINE_F32);
        sum += a->u[k] * a->u[k];
    }
    a->rate /= at_least(1, sqrt(sum / (double)(a->r * a->c)) / clip);
    a->astray |= isfinite(a->rate) && a->rate > trine_largest(TRINE_F32);
}

static void put_params(trine_ref *ref, const adafactor *a) {
    double *param = trine_ref_value(ref, "param"), *copy = trine_ref_value(ref, "copy");
    const double largest = trine_largest(TRINE_F32);
    for (int64_t k = 0; k < a->r * a->c; k++) {
        const double p = param[k], p_abs = trine_finite_abs(p) * (1 + a->decay), step = fabs(a->rate * a->u[k]);
        param[k] = (p - a->decay * p) - a->rate * a->u[k];
        if (copy) copy[k] = param[k];
        const bool unsure = a->astray || p_abs > largest || a->decay > largest || (isfinite(step) && step > largest) ||
                            (isinf(param[k]) && fabs(a->u[k]) < 0x1p-100);
        const double magnitude = unsure               ? INFINITY
                                 : isfinite(param[k]) ? step + p_abs / 5
                                                      : 0,
                     slack = isfinite(magnitude + step) ? 0x1p-147 * (1 + a->rate + fabs(a->u[k])) : 0;
        trine_ref_magnitude(ref, "param")[k] = magnitude;
        trine_ref_slack(ref, "param")[k] = slack;
        if (!copy) continue;
        trine_ref_magnitude(ref, "copy")[k] = magnitude;
        trine_ref_slack(ref, "copy")[k] = slack;
    }
}

/* Bounds, with u = 2^-24. Sums are formed in float64, whose roundings do not count beside u; but four squares of
 * param, or of the updates, may be added in f32 before, which is 3u of the sum and 1.5u of its root.
 *
 * row_var and col_var: g = grad*grad_scale is rounded once, which is 2u of its square, and a third for the rest.
 * param: the square roots of the variances are 1u off by g, and rounded once each; their product, its limit, g and the
 * product with it are rounded: u is within 7u, and its root mean square within 8.5u, that of param within 1.5u; the
 * factor rate/max(1, rms/clip) is rounded once, its product with u once, which makes 19u of the step. The decay and the
 * last difference are 4u of |p|(1 + lr wd), and that difference 1u of the step: 20u with a fifth of the former.
 * Infinite where f32 would not hold what all elements depend on. copy is rounded from the f32 result, not param. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    adafactor a = { .r = trine_ref_dim(ref, "r"), .c = trine_ref_dim(ref, "c") };
    const int64_t n = a.r * a.c;
    const double *param = trine_ref_value(ref, "param"), *told_lr = trine_ref_value(ref, "lr_tensor"),
                 *told_step = trine_ref_value(ref, "step_tensor"), *found_inf = trine_ref_value(ref, "found_inf");
    double *copy = trine_ref_value(ref, "copy");
    const double t = told_step ? told_step[0] : (double)args->step, lr = told_lr ? told_lr[0] : args->lr;
    const double eps1 = args->eps1 != 0 ? args->eps1 : 2 * trine_unit_roundoff(trine_ref_type(ref, "T"));
    if (found_inf && found_inf[0] != 0) {
        for (int64_t k = 0; copy && k < n; k++) copy[k] = param[k];
        return;
    }
    double squares = 0;
    for (int64_t k = 0; k < n; k++) squares += param[k] * param[k];
    const double rho = 1 / sqrt(t) < lr ? 1 / sqrt(t) : lr;
    a.rate = rho * at_least(args->eps2, sqrt(squares / (double)n));
    a.w = pow(t, args->beta2_decay);
    a.decay = lr * args->weight_decay;
    if (trine_ref_value(ref, "row_var")) put_variances(ref, &a, "row_var", a.r, a.c, 1, a.c);
    put_variances(ref, &a, "col_var", a.c, a.r, a.c, 1);
    a.row = malloc(sizeof *a.row * ((size_t)(a.r + a.c + n) + 1));
    if (a.row == NULL) abort();
    a.col = a.row + a.r;
    a.u = a.col + a.c;
    find_scales(ref, &a, eps1);
    find_updates(ref, &a, args->clip);
    put_params(ref, &a);
    if (args->stochastic) by_chance(ref, n, 20, args->seed, args->stream);
    if (a.astray) {
        for (int64_t i = 0; trine_ref_value(ref, "row_var") && i < a.r; i++)
            trine_ref_magnitude(ref, "row_var")[i] = INFINITY;
        for (int64_t j = 0; j < a.c; j++) trine_ref_magnitude(ref, "col_var")[j] = INFINITY;
    }
    free(a.row);
}

const trine_spec trine_spec_adafactor = {
    SPEC(adafactor),
    .summary = "Adafactor step: a second moment of rows and columns, updates clipped by their root mean square",
    .formula =
        "g = grad_scale grad; w = t^beta2_decay; rate = min(lr, 1/sqrt(t)) max(eps2, rms(p)); row_var = row_var + "
        "w (mean_j g^2 - row_var); col_var = col_var + w (mean_i g^2 - col_var); u = g / sqrt(max(row_var[i] "
        "col_var[j] / max(mean_i row_var, eps1), eps1^2)), of a vector g / sqrt(max(col_var, eps1^2)); p = p - lr "
        "wd p - rate / max(1, rms(u)/clip) u; copy = p; param of bf16 may be rounded by chance; where found_inf is not "
        "0 param and variances stay as "
        "they are",
    .source = "Shazeer and Stern 2018, algorithms 4 to 6; torch.optim.Adafactor",
    .tensors = { TENSOR(param, IN | OUT, "T", "[r] c", .terms = "20"), TENSOR(grad, IN, "G", "[r] c"),
                 TENSOR(col_var, IN | OUT, "f32", "c", .fill = "positive", .terms = "3"),
                 TENSOR(row_var, IN | OUT | OPTIONAL, "f32", "r", .fill = "positive", .terms = "3"),
                 TENSOR(copy, OUT | OPTIONAL, "C", "[r] c", .terms = "20"),
                 TENSOR(grad_scale, IN | OPTIONAL, "f32", "1"),
                 TENSOR(lr_tensor, IN | OPTIONAL, "f32", "1", .fill = "positive"),
                 TENSOR(step_tensor, IN | OPTIONAL, "i64", "1", .fill = "positive"),
                 TENSOR(found_inf, IN | OPTIONAL, "f32", "1", .fill = "flag"),
                 TENSOR(philox, IN | OPTIONAL, "i64", "2") },
    .params = { PARAM(lr, F32, .values = "1e-2 0 0.5", .min = 0, .doc = "largest relative step"),
                PARAM(beta2_decay, F32, .values = "-0.8 -0.5", .fallback = -0.8, .max = 0,
                      .doc = "power of t that is the weight of a step's squares"),
                PARAM(eps1, F32, .values = "0 1e-3 1e-30", .min = 0, .unset = "the rounding unit of param's type",
                      .doc = "smallest root of an element's variance"),
                PARAM(eps2, F32, .values = "1e-3 1", .fallback = 1e-3, .min = 0, .doc = "smallest rms(p) in the rate"),
                PARAM(clip, F32, .values = "1 0.1", .fallback = 1, .min = 0x1p-126, .doc = "largest rms of an update"),
                PARAM(weight_decay, F32, .values = "0 0.1", .min = 0, .doc = "wd: decay of param per step and lr"),
                PARAM(step, I64, .values = "1 2 1000 1000000", .min = 1, .doc = "t: number of this step, from 1"),
                BY_CHANCE_PARAMS },
    .types = { "T=f32|bf16|f16 G=f32|bf16|f16 C=bf16|f16" },
    .require = { "philox instead of seed", "lr_tensor instead of lr", "step_tensor instead of step",
                 "without row_var: r == 1" },
    .flops = "12*r*c",
    .sizes = { "r: 1 0 2 7 64 300", "c: 0 1 7 31 64 1000 4097" },
    .cases = { "matrix: T=f32 G=f32 C=bf16 r=4096 c=4096 step=10 lr=0.01 +row_var",
               "mixed: T=f32 G=bf16 C=bf16 r=4096 c=4096 step=10 lr=0.01 +row_var +copy",
               "bf16: T=bf16 G=bf16 C=bf16 r=8192 c=4096 step=10 lr=0.01 +row_var",
               "vector: T=f32 G=f32 C=bf16 r=1 c=4096 step=10 lr=0.01" },
    .reference = reference,
};
