/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm on the CPU with the same bits as on every device (spec/same.h). A row is normalized times the
 * power of two that takes the larger of its largest element and sqrt(eps) to between 1 and 2. */
#include "backends/cpu/core/same.h"

static const char *norm_same_refuse(const trine_call *call) {
    return norm_of(call).p > 0 ? "what is the same everywhere has no dropout" : NULL;
}

/* x + residual of VL elements; 0 beyond the row. */
INLINE vf norm_same_h(const norm *a, int64_t i, int64_t j, trine_dtype T) {
    vf h = same_load(row_at(a->x, i), T, j, a->n, 0);
    if (a->residual) h += same_load(row_at(a->residual, i), a->residual->dtype, j, a->n, 0);
    return h;
}

/* The power of two that takes `largest` to between 1 and 2. */
static inline float norm_same_power(float largest) {
    int32_t bits;
    memcpy(&bits, &largest, sizeof bits);
    const int32_t e = (bits >> 23) - 127, bounded = e < -126 ? -126 : e > 126 ? 126 : e;
    bits = (127 - bounded) << 23;
    memcpy(&largest, &bits, sizeof bits);
    return largest;
}

/* Of h `down`. */
typedef struct norm_same_statistics {
    float down, mean, rstd;
} norm_same_statistics;

INLINE norm_same_statistics norm_same_find(const norm *a, int64_t i, trine_dtype T) {
    const float n = (float)a->n;
    vf most = vset(sqrtf(a->eps));
    same_lanes sums = { 0 }, shifts = { 0 }, squares = { 0 };
    for (int64_t j = 0; j < a->n; j += VL) most = same_larger(most, vabs(norm_same_h(a, i, j, T)));
    norm_same_statistics s = { .down = norm_same_power(same_largest(most)) };
    const vf down = vset(s.down);
    float origin = 0, shift = 0;
    if (CENTERED) {
        for (int64_t j = 0; j < a->n; j += VL) same_add(&sums, j, vproduct(norm_same_h(a, i, j, T), down));
        origin = same_total(sums.v, SAME_LANES) / n;
    }
    for (int64_t j = 0; j < a->n; j += VL) {
        const vf d = same_within(vproduct(norm_same_h(a, i, j, T), down) - origin, j, a->n);
        if (CENTERED) same_add(&shifts, j, d);
        same_add(&squares, j, vproduct(d, d));
    }
    float v = same_total(squares.v, SAME_LANES) / n, eps = same_product(same_product(a->eps, s.down), s.down);
    if (CENTERED) {
        shift = same_total(shifts.v, SAME_LANES) / n;
        v = v - same_product(shift, shift);
        if (v < 0) v = 0;
        if (s.down < 1 && eps < FLT_MIN) eps = FLT_MIN; /* of a spread of 0 */
        s.mean = isfinite(origin) ? origin + shift : origin;
    }
    s.rstd = 1 / sqrtf(v + eps);
    return s;
}

INLINE void norm_same_rows(const norm *a, int64_t first, int64_t last, trine_dtype T) {
    for (int64_t i = first; i < last; i++) {
        const norm_same_statistics s = norm_same_find(a, i, T);
        for (int64_t j = 0; j < a->n; j += VL) {
            const vf h = norm_same_h(a, i, j, T);
            vf t = vproduct(vproduct(h, vset(s.down)) - s.mean, vset(s.rstd));
            if (a->round) t = norm_round(t, T);
            if (a->weight) t = vproduct(t, same_load(a->weight->data, a->weight->dtype, j, a->n, 0) + a->weight_offset);
            if (a->bias) t += same_load(a->bias->data, a->bias->dtype, j, a->n, 0);
            if (a->residual_out) same_store(row_at(a->residual_out, i), a->residual_out->dtype, j, a->n, h);
            same_store(row_at(a->y, i), T, j, a->n, t);
        }
        if (a->rstd) ((float *)a->rstd->data)[i * a->rstd->stride[0]] = same_product(s.rstd, s.down);
        if (a->mean) ((float *)a->mean->data)[i * a->mean->stride[0]] = norm_unscaled(s.mean, s.down);
    }
}

static void norm_same_part(const void *context, int64_t first, int64_t last, int thread) {
    const norm *a = context;
    (void)thread;
    FOR_TYPE(a->x->dtype, norm_same_rows, a, first, last);
}

static trine_status norm_same_launch(const trine_call *call) {
    const norm a = norm_of(call);
    cpu_shares(call, cpu_team(call, a.r, row_bytes(call)), a.r, norm_same_part, &a);
    return TRINE_OK;
}
