/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of cross_entropy and cross_entropy_backward share. */
#ifndef TRINE_SPEC_CROSS_ENTROPY_H
#define TRINE_SPEC_CROSS_ENTROPY_H

#include <math.h>

#include "spec/spec.h"

/* How far exp(d) may move when d does by at most `delta`. */
static inline double exp_shift(double d, double delta) {
    if (delta == 0 || (exp(d) == 0 && !(d + delta > -800))) return 0; /* also d = -inf, delta = inf */
    return delta < 1 ? exp(d) * expm1(delta) : exp(d + delta) - exp(d);
}

/* The largest scale*x[k], NaN left aside; -inf for none. */
static inline double row_max(const double *x, int64_t v, double scale) {
    double max = -INFINITY;
    for (int64_t k = 0; k < v; k++)
        if (scale * x[k] > max) max = scale * x[k];
    return max;
}

/* log sum_k exp(scale*x[k]): +inf if an element is, -inf if all are, NaN if one is. */
static inline double row_lse(const double *x, int64_t v, double scale) {
    const double max = row_max(x, v, scale), origin = isfinite(max) ? max : 0;
    double sum = 0;
    for (int64_t k = 0; k < v; k++) sum += exp(scale * x[k] - origin);
    return origin + log(sum);
}

/* What the gradient of a row follows from besides its logits. */
typedef struct gradient_row {
    double scale, smoothing, z_loss, dloss;
    double lse, lse_error; /* how far a kernel's lse may be off */
    int64_t label;         /* -1: the row is ignored */
    bool overflow;         /* lse may not be computed at all */
} gradient_row;

/* Bound, with u = 2^-24, z = scale*x, l = lse, L = its error, p = exp(z - l), w = z_loss, F = 1 + 2w(|l| + L). The exponent is off by
 * d = 3u(|z| + |l| + L) + L: the product, the difference, a constant for exp2, and lse. So p is off by p(e^d - 1), which is slack, and by exp to 4 ulp, 8u p.
 * Then 1 + 2 w l (3u F, and 2wL of p, which is slack), the product with p (1u), the two differences (2u of the parts' absolute values; 1-e and e/v have been
 * rounded once), g*scale and the product with it (3u): 17u on p F, 6u on the others, for which 20u on p F and on a third of the others is safe, p being taken as
 * large as L may make it. An exponential below 2^-126 may be flushed, one above 2^127 may overflow. */
static inline void row_gradient(const gradient_row *g, const double *x, int64_t v, double *dlogits, double *magnitude, double *slack) {
    const double u = trine_unit_roundoff(TRINE_F32), largest = trine_largest(TRINE_F32), tiny = trine_smallest_normal(TRINE_F32);
    const double lse = g->lse, error = isfinite(lse) ? g->lse_error : 0, w = g->z_loss, gain = g->dloss * g->scale;
    const double factor = w > 0 ? 1 + 2 * w * lse : 1, factor_abs = w > 0 ? 1 + 2 * w * (fabs(lse) + error) : 1;
    for (int64_t k = 0; k < v; k++) {
        if (g->label < 0) {
            dlogits[k] = 0;
            continue;
        }
        const double z = g->scale * x[k], p = exp(z - lse), target = (k == g->label ? 1 - g->smoothing : 0) + g->smoothing / (double)v;
        dlogits[k] = gain * (p * factor - target);
        const double shift = exp_shift(z - lse, 3 * u * (fabs(z) + fabs(lse) + error) + error), most = p + exp_shift(z - lse, error);
        const double size = fabs(gain) * ((p + shift) * factor_abs + target);
        const bool finite_inputs = isfinite(x[k]) && isfinite(lse) && isfinite(g->dloss);
        const bool finite_overflow = g->overflow || 2 * fabs(g->scale) > largest || 2 * trine_finite_abs(z) > largest || 2 * trine_finite_abs(lse) > largest ||
                                     trine_finite_abs(gain) > largest || trine_finite_abs(factor_abs) > largest;
        const bool overflow = finite_overflow || p + shift > 0x1p127 || (p + shift) * factor_abs > largest || size > largest;
        const double moved = shift * factor_abs + p * 2 * w * error, unsure = 20 * u * (most * factor_abs + target / 3) + moved;
        if (isinf(g->dloss) && fabs(p * factor - target) <= unsure) { /* Inf of either sign, or Inf * 0 */
            dlogits[k] = magnitude[k] = INFINITY;
            continue;
        }
        if (!isfinite(dlogits[k]) && !finite_inputs && !finite_overflow) continue;
        magnitude[k] = overflow ? INFINITY : fabs(gain) * (most * factor_abs + target / 3);
        slack[k] = fabs(gain) * (moved + factor_abs * tiny) + tiny * (p * factor_abs + target);
    }
}

#endif
