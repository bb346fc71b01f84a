/* SPDX-License-Identifier: Apache-2.0 */
/* What cross_entropy and cross_entropy_backward share on the CPU: labels, the exponential, and the gradient of a row
 * from its lse. */
#ifndef TRINE_CPU_CROSS_ENTROPY_H
#define TRINE_CPU_CROSS_ENTROPY_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec_pair.h"

static inline int64_t label_at(const trine_tensor *labels, int64_t i) {
    return labels->dtype == TRINE_I32 ? ((const int32_t *)labels->data)[i] : ((const int64_t *)labels->data)[i];
}

/* The first row of [first, last) whose label is neither in [0, v) nor `ignore`; last if there is none. */
static inline int64_t label_bad(const trine_tensor *labels, int64_t first, int64_t last, int64_t v, int64_t ignore) {
    for (int64_t i = first; i < last; i++) {
        const int64_t y = label_at(labels, i);
        if ((y < 0 || y >= v) && y != ignore) return i;
    }
    return last;
}

/* TRINE_OK if every label is in [0, v) or `ignore`; else an error that names the first that is not. */
static inline trine_status labels_check(const trine_call *call, const trine_tensor *labels, int64_t v, int64_t ignore) {
    const int64_t rows = labels->shape[0], bad = label_bad(labels, 0, rows, v, ignore);
    if (bad == rows) return TRINE_OK;
    return call->host->error(
        TRINE_ERR_ARGUMENT, "%s: labels[%lld] = %lld is neither in [0, v = %lld) nor the ignored label %lld",
        call->plan->spec->name, (long long)bad, (long long)label_at(labels, bad), (long long)v, (long long)ignore);
}

/* exp(z - top), z = scale x, is taken as 2^(spread (f x - origin)), where f x halves x, or turns it round as well: the
 * difference comes before the product, so that it is 0 where z is top whatever the size of both, and of finite x it
 * does not overflow. z = unit f x. */
typedef struct exponent {
    float f, spread;
    double unit;
} exponent;

static inline exponent exponent_of(float scale) {
    const double unit = 2 * fabs((double)scale);
    return (exponent){ scale > 0   ? 0.5f
                       : scale < 0 ? -0.5f
                                   : 0,
                       scale == 0 ? 1 : (float)(unit * 1.4426950408889634), unit };
}

/* An origin for f x as large as any that is finite: of an infinite one Inf - Inf would come. */
static inline float to_origin(float x) {
    return x > 0x1.fffffep126f ? 0x1.fffffep126f : x < -0x1.fffffep126f ? -0x1.fffffep126f : x;
}

/* 2^r for |r| <= 1/2, within 2 ulp with the rounding of its product with a power of two. */
INLINE vf exp2_small(vf r) {
    vf p = vset(1.32693991e-3f);
    p = vfma(p, r, vset(9.67129413e-3f));
    p = vfma(p, r, vset(5.55071123e-2f));
    p = vfma(p, r, vset(2.40222469e-1f));
    p = vfma(p, r, vset(6.93147004e-1f));
    return vfma(p, r, vset(1.0f));
}

/* 2^x for |x| <= 126, at a third of the work of vexp. */
INLINE vf exp2_near(vf x) {
    /* adding it rounds to an integer, biased as an exponent is, in the low bits */
    const vf magic = vset(0x1.8p23f + 127);
    const vf t = x + magic, r = x + (magic - t); /* not t - magic, for which GCC makes another constant */
    return exp2_small(r) * (vf)((vi)t << 23);
}

/* The same for any x; results below 2^-126 count as 0, and those above 2^127 may be Inf. */
INLINE vf exp2_any(vf x) { return exp2_near(vmin(vset(128.0f), vmax(vset(-127.0f), x))); }

/* 2^(d spread) where d spread is at most 126, or Inf, which gives NaN; below 2^-126 it counts as 0. */
INLINE vf exp2_below(vf d, vf spread) {
    const vf magic = vset(0x1.8p23f + 127);
    const vf t = vfma(d, spread, magic), r = vfma(d, spread, magic - t);
    return (vf)(~(t < magic - 126) & (vi)(exp2_small(r) * (vf)((vi)t << 23)));
}

/* What gradients of rows follow from. */
typedef struct gradient_rows {
    const trine_tensor *logits, *labels, *dloss, *dlogits; /* dloss: NULL for 1 */
    const float *weights;                                  /* of the classes; NULL: all are 1 */
    double weight_sum;
    int64_t v, ignore, first_class; /* that of the first logit, where the row is a part of all v classes */
    double smoothing, z_loss;
    float scale;
} gradient_rows;

#define COARSE_LSE \
    1024 /* from there on cross_entropy_backward takes the row's own sums for it, as the specification says */

/* A row's probabilities, and with them m + 2 z_loss lse: 2^(spread (f x - origin)) factor. */
typedef struct row_powers {
    float origin, factor;
} row_powers;

static inline double weight_at(const float *weights, int64_t k) { return weights ? weights[k] : 1; }

static inline double weight_sum(const float *weights, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; weights && k < n; k++) sum += weights[k];
    return sum;
}

/* not m + 0 * Inf */
static inline double z_factor(double m, double z_loss, double lse) { return z_loss > 0 ? m + 2 * z_loss * lse : m; }

typedef struct gradient {
    float f, spread, origin;
    float gain, factor, target;
    const float *weights; /* by which the targets count; NULL: all are 1 */
} gradient;

/* gain (2^(spread (f x - origin)) factor - target) */
INLINE vf gradient_of(const gradient *g, vf x, vf target) {
    const vf p = exp2_below(vfma(x, vset(g->f), vset(-g->origin)), vset(g->spread));
    return g->gain * vfma(p, vset(g->factor), -target);
}

INLINE void gradient_store(char *y, const char *x, int64_t n, const gradient *shared, trine_dtype to,
                           trine_dtype type) {
    const gradient g = *shared;
    int64_t k = 0;
    for (; k + 2 * VL <= n; k += 2 * VL) {
        vf value[2], target[2] = { vset(g.target), vset(g.target) };
        vload2_as(value, x, type, k, to);
        if (g.weights) {
            vload2_as(target, g.weights, TRINE_F32, k, to);
            for (int j = 0; j < 2; j++) target[j] *= g.target;
        }
        for (int j = 0; j < 2; j++) value[j] = gradient_of(&g, value[j], target[j]);
        vstore2_as(y, to, k, value, to);
    }
    for (; k < n; k += VL) {
        const int rest = n - k < VL ? (int)(n - k) : VL;
        const vf weight = g.weights ? vloadn(g.weights, TRINE_F32, k, rest, 0) : vset(1);
        vstoren(y, to, k, rest, gradient_of(&g, vloadn(x, type, k, rest, 0), g.target * weight));
    }
}

/* Of the logits' type, or of f32 to a narrower one. */
INLINE void gradient_same(char *y, const char *x, int64_t n, const gradient *g, trine_dtype type) {
    gradient_store(y, x, n, g, type, type);
}

/* m, by which a row's lse counts. Of a label that is none, 0. */
static inline double lse_weight(const gradient_rows *rows, int64_t row) {
    const int64_t label = label_at(rows->labels, row);
    if (rows->weights == NULL) return 1;
    if (label < 0 || label >= rows->v) return 0;
    return (1 - rows->smoothing) * rows->weights[label] +
           (rows->smoothing > 0 ? rows->smoothing / (double)rows->v * rows->weight_sum : 0);
}

/* Elements first to first + n - 1 of a row. */
static inline void gradient_chunk(const gradient_rows *rows, int64_t row, row_powers powers, int64_t first, int64_t n) {
    const trine_tensor *logits = rows->logits, *dlogits = rows->dlogits, *dloss = rows->dloss;
    const trine_dtype type = logits->dtype, to = dlogits->dtype;
    const int64_t label = label_at(rows->labels, row);
    const char *x = (const char *)logits->data + (row * logits->stride[0] + first) * (int64_t)vsize(type);
    char *y = (char *)dlogits->data + (row * dlogits->stride[0] + first) * (int64_t)vsize(to);
    if (label == rows->ignore) {
        memset(y, 0, (size_t)n * vsize(to));
        return;
    }
    const double spread = rows->smoothing / (double)rows->v;
    const exponent e = exponent_of(rows->scale);
    gradient g = {
        .f = e.f,
        .spread = e.spread,
        .origin = powers.origin,
        .gain = (dloss ? ((const float *)dloss->data)[row * dloss->stride[0]] : 1) * rows->scale,
        .factor = powers.factor,
        .target = (float)spread,
        .weights = rows->weights && rows->smoothing > 0 ? rows->weights + first : NULL,
    };
    const int64_t place = label - rows->first_class - first;
    const bool here = place >= 0 && place < n;
    const float at_label = here ? sload(x, type, place) : 0; /* before it is overwritten in place */
    if (to == type)
        FOR_TYPE(type, gradient_same, y, x, n, &g);
    else if (to == TRINE_BF16)
        gradient_store(y, x, n, &g, TRINE_BF16, TRINE_F32);
    else
        gradient_store(y, x, n, &g, TRINE_F16, TRINE_F32);
    if (here) {
        const float target = (float)((1 - rows->smoothing + spread) * weight_at(rows->weights, label));
        sstore(y, to, place, gradient_of(&g, vset(at_label), vset(target))[0]);
    }
}

#endif
