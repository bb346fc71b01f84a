/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of attention's gradients: what kernels may make of one score's part in them. */
#ifndef TRINE_SPEC_ATTENTION_GRADIENT_H
#define TRINE_SPEC_ATTENTION_GRADIENT_H

#include "attention.h"

/* Bound. With p = exp(z - lse), dp = dout.v, D = dout.o, f = dz/ds and ds = p (dp - D) f, o and lse taken as given:
 *     dv_j = sum_i p_ij dout_i,  dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i,  dbias_ij = ds_ij / f.
 * By dropout p_ij in dv_j, and dp in ds, are multiplied by r_ij, which is 0, whatever these are, or 1/(1 - p); dp keeps
 * in what follows its meaning with that, and A is the sum with it.
 * 1. The exponent z - lse is off by e: the score's own error, and 4u(|z| + |lse|) for the difference and its product
 * with log2(e); exp to 4 ulp (8u) and a product: p is off by `p_error` <= p (expm1(e) + 9u), and by all of itself and
 *    five times the least subnormal where what is computed may be subnormal, which may be taken for zero. Where |lse|
 *    is ATTENTION_COARSE and more, p is at most 1, by the formula and in kernels: then it is between min(1, p e^-e) and
 *    min(1, p e^e), and so never off by more than e, nor than 1.
 * 2. dp and D are sums of d products: off by d u (A + B) together, A = sum |dout||v|, B = sum |dout||o|; the difference
 * and two products add 3u. With f = 1 -
 *    t^2, t = tanh off by at most the score's error over c: f is off by twice that and 4u. So ds is off by
 *    `ds_error` <= (p_error f + p f (d + 8) u + (p + p_error) f_error) (A + B).
 * 3. The outer sums pass each term through at most one addition for each of their terms, a product, and two for scale:
 * (terms + 16) u of the magnitudes
 *    sum p |dout|, |scale| sum |ds||k| and |scale| sum |ds||q|. The errors above, summed the same way, are slack.
 * 4. p and ds may be rounded to T before the outer products: u(T) of the magnitudes;
 * or absolutely, where they are subnormal in T.
 * 5. The product with 1/(1 - p), of p or of their sum, adds u to what p and dp are off by.
 * 6. dsinks_h = -sum_i p D over all queries, p = exp(sink_h - lse_i), of which 1 and 2 hold as for a key whose score is
 * the sink and exact, and whose value is 0. The sum passes each term through as many additions as it has terms. */
typedef struct gradient {
    double *value, *magnitude, *slack;
} gradient;

static inline gradient gradient_of(const trine_ref *ref, const char *name) {
    return (gradient){ trine_ref_value(ref, name), trine_ref_magnitude(ref, name), trine_ref_slack(ref, name) };
}

/* Adds weight x, where `weight` is off by `error` and may be rounded with an absolute error of `lost`. An infinite term
 * may be NaN in a kernel where the weight underflows, or the other way round. */
static inline void add(gradient *g, int64_t at, double weight, double error, double lost, double x) {
    const double term = weight * x;
    g->value[at] += term;
    if (isinf(term) || (isinf(x) && error > 0)) g->magnitude[at] = INFINITY;
    if (!isfinite(term)) return;
    g->magnitude[at] += fabs(term);
    g->slack[at] += 1.01 * error * fabs(x) + lost * fabs(x) + FLUSH * (fabs(weight) + 1);
}

static inline void mark(gradient *g, int64_t at, int64_t d) {
    for (int64_t c = 0; g->value && c < d; c++) g->magnitude[at + c] = INFINITY;
}

/* Scales a finished gradient, and turns what may have overflowed into "anything": sums, with all that they may be off
 * by. */
static inline void finish(gradient *g, int64_t count, double scale) {
    for (int64_t i = 0; i < count; i++) {
        const double largest = (g->magnitude[i] + g->slack[i]) * fmax(1, fabs(scale));
        const bool uncertain = largest > 0.5 * trine_largest(TRINE_F32);
        g->value[i] = uncertain ? 0 : g->value[i] * scale;
        g->magnitude[i] = uncertain ? INFINITY : g->magnitude[i] * fabs(scale);
        g->slack[i] = g->slack[i] * fabs(scale) + FLUSH;
    }
}

/* One score's p and ds. */
typedef struct weights {
    double p, p_error, ds, ds_error, dz, dz_error; /* dz: ds without f */
    bool uncertain;
} weights;

typedef struct query {
    const double *dout, *v;
    double lse, D, size, inputs; /* size: B; inputs: sum |dout| + |o| */
} query;

static inline double attention_p(double z, double lse) {
    const double p = exp(z - lse);
    return fabs(lse) >= ATTENTION_COARSE && p > 1 ? 1 : p;
}

/* Of a key whose value is v, or of a sink, where that is NULL; `kept` is what dropout multiplies by. */
static inline weights weights_of(const attention *a, const query *x, const score *s, const double *v, double kept,
                                 double largest) {
    const bool coarse = fabs(x->lse) >= ATTENTION_COARSE;
    weights w = { .p = attention_p(s->z, x->lse), .uncertain = s->uncertain };
    double dp = 0, size = x->size, inputs = x->inputs + 4 * (double)a->d;
    for (int64_t c = 0; v && kept > 0 && c < a->d; c++) {
        const double term = kept * (x->dout[c] * v[c]);
        dp += term;
        if (isfinite(term)) size += fabs(term);
        if (isfinite(v[c])) inputs += fmax(1, kept) * fabs(v[c]);
    }
    if (isfinite(s->z) && isfinite(x->lse)) {
        const double e = s->error + 4 * U * (fabs(s->z) + fabs(x->lse));
        const double low = attention_p(s->z - e, x->lse), high = attention_p(s->z + e, x->lse);
        w.p_error = coarse ? fmax(w.p - low, high - w.p) : e < 1 ? w.p * expm1(e) : exp(s->z - x->lse + e);
        w.p_error += 9 * U * w.p + ((coarse ? low : w.p * exp(-e)) * (1 - 9 * U) < FLUSH ? w.p + 5 * 0x1p-149 : 0);
    }
    const double f_error = a->softcap > 0 ? fmin(1, 2 * s->bent / a->softcap + 4 * U) : 0;
    const double above = w.p + w.p_error;
    w.ds = w.p * (dp - x->D) * s->slope;
    /* What is infinite is NaN beside a factor of 0, and the factors may be 0 in a kernel, or not. */
    w.uncertain |= isinf(dp - x->D) && ((w.p_error >= w.p && w.p_error > 0) || (f_error > 0 && s->slope <= f_error));
    w.dz = w.p * (dp - x->D);
    w.dz_error = (w.p_error + w.p * ((double)a->d + 9) * U) * size + above * FLUSH * inputs;
    w.ds_error = (w.p_error * s->slope + w.p * s->slope * ((double)a->d + 9) * U + above * f_error) * size +
                 above * FLUSH * inputs;
    w.uncertain |= size > 0.5 * trine_largest(TRINE_F32) || above > 0.5 * largest || !isfinite(w.p_error);
    w.uncertain |= !isnan(w.ds) && (fabs(w.ds) + w.ds_error) * fmax(1, fabs(a->scale)) > 0.5 * largest;
    return w;
}

#endif
