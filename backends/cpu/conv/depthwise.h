/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of single channels on the CPU: a vector of channels is summed tap by tap. What has its neighbours
 * along the width side by side in memory is for planes.h. */
#ifndef TRINE_CPU_CONV_DEPTHWISE_H
#define TRINE_CPU_CONV_DEPTHWISE_H

#include "product.h"

/* The weights as floats, tap by tap, channels side by side; and the bias behind them. */
static inline int64_t depthwise_channels(const conv_product *a) { return cpu_round_up(a->groups, VL); }
static inline size_t depthwise_bytes(const conv_product *a) {
    return (size_t)((conv_taps(a->x.axis) + 1) * depthwise_channels(a) * (int64_t)sizeof(float));
}

INLINE void depthwise_pack(const conv_product *a, trine_dtype T) {
    const conv_weights *w = &a->w;
    const int64_t *taps[3] = { &a->x.axis[0].taps, &a->x.axis[1].taps, &a->x.axis[2].taps };
    float *to = a->call->workspace;
    for (int64_t number = 0; number < conv_taps(a->x.axis); number++) {
        const int64_t tap[3] = { number / (*taps[1] * *taps[2]), number / *taps[2] % *taps[1], number % *taps[2] };
        const char *from = w->data;
        for (int d = 0; d < 3; d++) from += (w->first[d] + tap[d] * w->step[d]) * w->tap[d];
        for (int64_t c = 0; c < depthwise_channels(a); c++)
            *to++ = c < a->groups ? sload(from + c * w->group, T, 0) : 0;
    }
    for (int64_t c = 0; c < depthwise_channels(a); c++)
        *to++ = a->bias && c < a->groups ? sload(a->bias->data, a->bias->dtype, c * a->bias->stride[0]) : 0;
}

/* A vector of channels of one position. */
INLINE vf depthwise_sum(const conv_product *a, const conv_place *place, int64_t channel, int n, trine_dtype T) {
    const conv_axis *d = &a->x.axis[0], *h = &a->x.axis[1], *w = &a->x.axis[2];
    const conv_view *from = &a->x.from;
    const int64_t apart = depthwise_channels(a);
    const float *weight = (const float *)a->call->workspace + channel;
    vf sum = vzero();
    for (int64_t t = 0; t < d->taps; t++)
        for (int64_t r = 0; r < h->taps; r++) {
            const int64_t z = place->at[0] + t * d->dilation, y = place->at[1] + r * h->dilation;
            const bool there = z >= 0 && z < d->in && y >= 0 && y < h->in;
            const char *row = there ? place->image + z * from->axis[0] + y * from->axis[1] : NULL;
            int64_t x = place->at[2];
            for (int64_t s = 0; s < w->taps; s++, x += w->dilation, weight += apart) {
                const bool inside = there && x >= 0 && x < w->in;
                const vf value = inside ? lanes_load(row + x * from->axis[2], from->channel, n, T) : vzero();
                sum = vfma(vload(weight, TRINE_F32, 0), value, sum);
            }
        }
    if (!a->bias) return sum;
    return sum + vload(weight, TRINE_F32, 0);
}

/* So many positions beside each other, which share loads of the weights. */
enum { DEPTHWISE_BESIDE = 8 };

/* The same as depthwise_sum, for `count` positions; `inside`: none reads beyond the width. */
INLINE void depthwise_beside(const conv_product *a, const conv_place *place, int64_t channel, const int count,
                             bool inside, vf *sum, trine_dtype T) {
    const conv_axis *d = &a->x.axis[0], *h = &a->x.axis[1], *w = &a->x.axis[2];
    const conv_view *from = &a->x.from;
    const int64_t apart = depthwise_channels(a);
    const float *weight = (const float *)a->call->workspace + channel;
    for (int i = 0; i < count; i++) sum[i] = vzero();
    for (int64_t t = 0; t < d->taps; t++)
        for (int64_t r = 0; r < h->taps; r++) {
            const int64_t z = place->at[0] + t * d->dilation, y = place->at[1] + r * h->dilation;
            const bool there = z >= 0 && z < d->in && y >= 0 && y < h->in;
            const char *row = there ? place->image + z * from->axis[0] + y * from->axis[1] : NULL;
            int64_t x = place->at[2];
            for (int64_t s = 0; s < w->taps; s++, x += w->dilation, weight += apart) {
                const vf by = vload(weight, TRINE_F32, 0);
#pragma GCC unroll 8
                for (int i = 0; i < count; i++) {
                    const int64_t at = x + i * w->step;
                    vf value = vzero();
                    if (there && (inside || (at >= 0 && at < w->in)))
                        value = lanes_load(row + at * from->axis[2], (int64_t)vsize(T), VL, T);
                    sum[i] = vfma(by, value, sum[i]);
                }
            }
        }
    for (int i = 0; i < count && a->bias; i++) sum[i] += vload(weight, TRINE_F32, 0);
}

/* `count` positions from `place` on to `to`, `beside` bytes apart. */
INLINE void depthwise_some(const conv_product *a, const conv_place *place, int64_t channel, const int count, char *to,
                           int64_t beside, trine_dtype T) {
    const conv_axis *w = &a->x.axis[2];
    const int64_t reach = (w->taps - 1) * w->dilation, least = reach < 0 ? reach : 0, most = reach > 0 ? reach : 0;
    vf sum[DEPTHWISE_BESIDE];
    if (place->at[2] + least >= 0 && place->at[2] + (count - 1) * w->step + most < w->in)
        depthwise_beside(a, place, channel, count, true, sum, T);
    else
        depthwise_beside(a, place, channel, count, false, sum, T);
    for (int i = 0; i < count; i++) vstore(to + i * beside, T, 0, sum[i]);
}

/* A row of positions, by vectors of channels. */
INLINE void depthwise_row(const conv_product *a, const conv_place *place, char *to, trine_dtype T) {
    const conv_axis *w = &a->x.axis[2];
    const int64_t apart = a->y.view.channel, beside = a->y.step[2] * a->y.view.axis[2], size = a->x.size;
    const bool dense = a->x.from.channel == size && apart == size;
    for (int64_t c = 0; c < a->groups; c += VL) {
        const int n = (int)conv_least(a->groups - c, VL);
        for (int64_t q = 0, some; q < w->positions; q += some) {
            conv_place at = *place;
            at.image += c * a->x.from.channel, at.at[2] += q * w->step;
            char *first = to + c * apart + q * beside;
            const int64_t left = dense && n == VL ? w->positions - q : 1;
            some = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
            if (some == 8)
                depthwise_some(a, &at, c, 8, first, beside, T);
            else if (some == 4)
                depthwise_some(a, &at, c, 4, first, beside, T);
            else if (some == 2)
                depthwise_some(a, &at, c, 2, first, beside, T);
            else
                lanes_store(first, apart, n, depthwise_sum(a, &at, c, n, T), T);
        }
    }
}

/* Rows of positions along the width, of all images and planes. */
INLINE void depthwise_rows(const conv_product *a, int64_t first, int64_t last, trine_dtype T) {
    const int64_t width = a->x.axis[2].positions;
    for (int64_t row = first; row < last; row++) {
        conv_place place;
        char *to;
        patches_places(&a->x, row * width, 1, 0, &place);
        target_places(a, row * width, 1, 0, &to);
        depthwise_row(a, &place, to, T);
    }
}

static inline void depthwise_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const conv_product *a = context;
    (void)thread;
    FOR_TYPE(a->type, depthwise_rows, a, first, last);
}

static inline void depthwise_run(const conv_product *a) {
    const int64_t rows = a->n * a->x.axis[0].positions * a->x.axis[1].positions;
    if (rows == 0 || a->x.axis[2].positions == 0) return;
    FOR_TYPE(a->type, depthwise_pack, a);
    cpu_shares(a->call, a->team, rows, depthwise_tasks, a);
}

#endif
