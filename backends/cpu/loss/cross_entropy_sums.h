/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of a row's logits on the CPU, in chunks that fit the L1 cache, and what follows from them. */
#ifndef TRINE_CPU_CROSS_ENTROPY_SUMS_H
#define TRINE_CPU_CROSS_ENTROPY_SUMS_H

#include "cross_entropy.h"

enum { CHUNK = 4096, SAMPLE = 64 }; /* elements of a row per task; of a chunk to estimate its maximum from */
#define FAR 0x1p23f /* a sum of powers up to here has none more than 23 (16 to base e) above the estimate */

/* Of a chunk, with d = f x - origin: sum 2^(spread d), the sum of d, and how many there are; of weighted classes the
 * sum of w d, and of w. */
typedef struct part {
    float origin, sum;
    double total, mass;
} part;

static inline void chunk_edges(trine_kernel_edges *edges, int symbol) {
    trine_kernel_edge(edges, symbol, VL);
    trine_kernel_edge(edges, symbol, 2 * VL);
    trine_kernel_edge(edges, symbol, SAMPLE);
    trine_kernel_edge(edges, symbol, CHUNK);
    trine_kernel_edge(edges, symbol, 2 * CHUNK);
}

static inline int64_t chunks_of(int64_t v) { return (v + CHUNK - 1) / CHUNK; }
static inline int64_t chunk_length(int64_t v, int64_t at) { return v - at < CHUNK ? v - at : CHUNK; }

/* The chunk's maximum of f x; NaN is passed over. */
INLINE float chunk_max(const char *x, int64_t n, float f, trine_dtype type) {
    vf max = vset(-INFINITY);
    int64_t k = 0;
    for (; k + VL <= n; k += VL) max = vmax(vload(x, type, k) * f, max);
    if (k < n) {
        const int rest = (int)(n - k);
        max = vmax(vsel(viota() < rest, vloadn(x, type, k, rest, 0) * f, max), max);
    }
    return vhmax(max);
}

/* Where f x and the origin are far from 0: the difference, then the product. */
INLINE void far_sums(const char *x, int64_t n, const exponent *e, bool totals, part *out, trine_dtype type) {
    const vf origin = vset(-out->origin), f = vset(e->f), spread = vset(e->spread);
    vf sum = vzero(), total = vzero();
    int64_t k = 0;
    for (; k + 2 * VL <= n; k += 2 * VL) {
        vf d[2];
        vload2(d, x, type, k);
        for (int j = 0; j < 2; j++) d[j] = vfma(d[j], f, origin);
        if (totals) total += d[0] + d[1];
        sum += exp2_any(d[0] * spread) + exp2_any(d[1] * spread);
    }
    for (; k < n; k += VL) {
        const int rest = n - k < VL ? (int)(n - k) : VL;
        const vi in = viota() < rest;
        const vf d = vfma(vloadn(x, type, k, rest, 0), f, origin);
        sum += (vf)(in & (vi)exp2_any(d * spread));
        if (totals) total += (vf)(in & (vi)d);
    }
    out->sum = vhsum(sum);
    out->total = vhsum(total);
}

/* Where spread times either is at most 126 in size, one instruction less: what the product with the origin loses by its
 * rounding is the same for all elements, and made good at the end.
 * Otherwise false is returned, and the sums are void. */
INLINE bool near_sums(const char *x, int64_t n, const exponent *e, bool totals, part *out, trine_dtype type) {
    const float scale = e->f * e->spread, shift = out->origin * e->spread;
    vf sum = vzero(), total = vzero();
    vu high = { 0 };
    int64_t k = 0;
    for (; k + 2 * VL <= n; k += 2 * VL) {
        vf value[2];
        vload2(value, x, type, k);
        for (int j = 0; j < 2; j++) value[j] = vfma(value[j], vset(scale), vset(-shift));
        if (totals) total += value[0] + value[1];
        sum += exp2_near(value[0]) + exp2_near(value[1]);
        vabs2(&high, x, type, k);
    }
    for (; k < n; k += VL) {
        const int rest = n - k < VL ? (int)(n - k) : VL;
        const vi in = viota() < rest;
        const vf value = vfma(vloadn(x, type, k, rest, 0), vset(scale), vset(-shift));
        sum += (vf)(in & (vi)exp2_any(value));
        if (totals) total += (vf)(in & (vi)value);
    }
    const double lost = (double)out->origin * e->spread - shift;
    out->sum = (float)(vhsum(sum) * exp2(-lost));
    out->total = (vhsum(total) - (double)n * lost) / e->spread;
    return vabs2_bound(high, type) * fabsf(scale) + fabsf(shift) <= 126;
}

/* The total where float does not reach so far. */
static inline double chunk_total(const char *x, int64_t n, const exponent *e, float origin, trine_dtype type) {
    double total = 0;
    for (int64_t k = 0; k < n; k++) total += (double)e->f * sload(x, type, k) - origin;
    return total;
}

/* One pass if no element is extreme and the maximum of the first ones is near that of all. +inf among z gives the sum
 * +inf; nothing but -inf gives 0; NaN gives NaN. */
INLINE void chunk_part(const char *x, int64_t n, const exponent *e, bool totals, part *out, trine_dtype type) {
    out->origin = to_origin(chunk_max(x, n < SAMPLE ? n : SAMPLE, e->f, type));
    if (!near_sums(x, n, e, totals, out, type)) far_sums(x, n, e, totals, out, type);
    if (out->sum > FAR) {
        out->origin = to_origin(chunk_max(x, n, e->f, type));
        far_sums(x, n, e, totals, out, type);
    }
    if (totals && !isfinite(out->total)) out->total = chunk_total(x, n, e, out->origin, type);
    out->mass = (double)n;
}

/* Total and mass by the weights of the chunk's classes, from its origin. */
INLINE void weighted_part(const char *x, const float *weights, int64_t n, const exponent *e, part *out,
                          trine_dtype type) {
    const vf origin = vset(-out->origin), f = vset(e->f);
    vf total = vzero(), mass = vzero();
    for (int64_t k = 0; k < n; k += VL) {
        const int rest = n - k < VL ? (int)(n - k) : VL;
        const vf weight = vloadn(weights, TRINE_F32, k, rest, 0), d = vfma(vloadn(x, type, k, rest, 0), f, origin);
        total += (vf)((viota() < rest) & (vi)(weight * d));
        mass += weight;
    }
    out->total = vhsum(total);
    out->mass = vhsum(mass);
    if (isfinite(out->total) && isfinite(out->mass)) return;
    out->total = out->mass = 0;
    for (int64_t k = 0; k < n; k++) {
        out->total += (double)weights[k] * ((double)e->f * sload(x, type, k) - out->origin);
        out->mass += weights[k];
    }
}

/* Elements first to first + n - 1 of a row, with the element type and the need of totals made constant; totals by the
 * classes' weights, unless those are NULL. */
static void row_chunk(const trine_tensor *logits, int64_t row, int64_t first, int64_t n, const exponent *e, bool totals,
                      const float *weights, part *out) {
    const trine_dtype type = logits->dtype;
    const char *x = (const char *)logits->data + (row * logits->stride[0] + first) * (int64_t)vsize(type);
    if (totals && !weights)
        FOR_TYPE(type, chunk_part, x, n, e, true, out);
    else
        FOR_TYPE(type, chunk_part, x, n, e, false, out);
    if (totals && weights) FOR_TYPE(type, weighted_part, x, weights + first, n, e, out);
}

/* Of the chunks of a row so far, as of one. In float64, which costs nothing here. */
typedef struct row_sums {
    double origin, sum, total, mass;
} row_sums;

static inline row_sums no_sums(void) { return (row_sums){ .origin = -0x1.fffffep126 }; }

static inline void sums_join(row_sums *s, const row_sums *p, double unit) {
    const double origin = fmax(p->origin, s->origin), down = s->origin - origin, its_down = p->origin - origin;
    s->sum =
        (down == 0 ? s->sum : s->sum * exp(down * unit)) + (its_down == 0 ? p->sum : p->sum * exp(its_down * unit));
    s->total += s->mass * down + p->total + p->mass * its_down;
    s->mass += p->mass;
    s->origin = origin;
}

static inline void sums_add(row_sums *s, const part *p, double unit) {
    sums_join(s, &(row_sums){ p->origin, p->sum, p->total, p->mass }, unit);
}

/* log sum exp z, less the z at the origin, and with it. */
static inline double sums_log(const row_sums *s) { return log(s->sum); }
static inline double sums_lse(const row_sums *s, double unit) { return s->origin * unit + sums_log(s); }

static inline row_powers sums_powers(const row_sums *s, double unit, double m, double z_loss) {
    return (row_powers){ (float)s->origin, (float)(z_factor(m, z_loss, sums_lse(s, unit)) / s->sum) };
}

#endif
