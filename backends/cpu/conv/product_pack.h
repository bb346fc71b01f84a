/* SPDX-License-Identifier: Apache-2.0 */
/* What a convolution's tiles read: panels of weights, images copied for them, and the runs of a task's patches. */
#ifndef TRINE_CPU_CONV_PRODUCT_PACK_H
#define TRINE_CPU_CONV_PRODUCT_PACK_H

#include "product_shape.h"

/* ---------------------------------------------------------------------------------------------------------- weights */

/* Elements [first, last) of `lanes` columns of the weights: column by column, or element by element where neighbours in
 * memory are neighbours in column. */
static inline void weights_gather(const conv_product *a, int64_t group, int64_t lane, int64_t lanes, int64_t first,
                                  int64_t last, bool across, char *to) {
    const conv_weights *w = &a->w;
    const int64_t size = (int64_t)trine_dtype_size(a->type), channels = a->x.channels, wide = a->x.axis[2].taps,
                  high = a->x.axis[1].taps;
    const char *from = w->data + group * w->group + lane * w->lane;
    for (int64_t e = first, end; e < last; e = end) {
        const int64_t number = e / channels, channel = e % channels,
                      tap[3] = { number / (wide * high), number / wide % high, number % wide };
        end = conv_least(e - channel + channels, last);
        const char *line = from + channel * w->channel;
        for (int d = 0; d < 3; d++) line += (w->first[d] + tap[d] * w->step[d]) * w->tap[d];
        if (across)
            for (int64_t i = e; i < end; i++)
                conv_copy(to + (i - first) * lanes * size, line + (i - e) * w->channel, lanes, w->lane, size);
        else
            for (int64_t l = 0; l < lanes; l++)
                conv_copy(to + (l * (last - first) + e - first) * size, line + l * w->lane, end - e, w->channel, size);
    }
}

/* Where a column's elements lie one behind the other, the first of them; else NULL. */
static inline const char *weights_dense(const conv_product *a, int64_t group, int64_t lane) {
    const conv_weights *w = &a->w;
    int64_t apart = (int64_t)trine_dtype_size(a->type);
    const char *at = w->data + group * w->group + lane * w->lane;
    if (a->x.channels > 1 && w->channel != apart) return NULL;
    apart *= a->x.channels;
    for (int d = 2; d >= 0; d--) {
        if (a->x.axis[d].taps > 1 && w->step[d] * w->tap[d] != apart) return NULL;
        apart *= a->x.axis[d].taps, at += w->first[d] * w->tap[d];
    }
    return at;
}

/* Panel i of the weights. */
static inline void pack_weights(const conv_product *a, int64_t i, int thread) {
    const int64_t panels = conv_up(a->lanes, a->wide), step = unit_depth(a->kind),
                  size = (int64_t)trine_dtype_size(a->type), bytes = unit_bytes(a->kind);
    const bool across = a->w.channel != size && a->w.lane == size;
    const int64_t lane = i % panels * a->wide, lanes = conv_least(a->lanes - lane, a->wide);
    const char *dense = across ? NULL : weights_dense(a, i / panels, lane);
    char *lines = conv_slice(a, thread) + a->x_bytes + a->sums_bytes + a->table_bytes + a->squares_bytes;
    for (int64_t part = 0; part < a->parts; part++) {
        const int64_t start = part * a->part, units = conv_units(a, part), depth = conv_depth(a, part);
        for (int64_t u = 0; u < units; u += CHUNK_UNITS) {
            const int64_t some = conv_least(units - u, CHUNK_UNITS), begin = (start + u) * step,
                          left = conv_least(depth - u * step, some * step), there = left > 0 ? left : 0;
            char *to = (char *)a->call->workspace + i * a->panel + (start + u) * a->wide * bytes;
            view v = { .dtype = a->type, .lane = a->w.lane, .along = size };
            if (!dense) {
                v.lane = across ? size : there * size, v.along = across ? lanes * size : size, v.across = across;
                if (there > 0) weights_gather(a, i / panels, lane, lanes, begin, begin + there, across, lines);
            }
            panel_pack(to, dense ? dense + begin * size : lines, &v, lanes, there, some, false);
        }
    }
}

static inline void pack_bias(const conv_product *a) {
    const trine_tensor *bias = a->bias;
    const int64_t count = a->groups * a->lanes;
    if (!bias) return;
    char *to = (char *)a->call->workspace + a->packed_bytes;
    memset(to, 0, (size_t)a->bias_bytes);
    for (int64_t k = 0; k < count; k++) {
        if (bias->dtype == TRINE_F64)
            ((double *)(void *)to)[k] = ((const double *)bias->data)[k * bias->stride[0]];
        else
            ((float *)(void *)to)[k] = sload(bias->data, bias->dtype, k * bias->stride[0]);
    }
}

/* ------------------------------------------------------------------------------------------------- images as copies */

/* Up to VL elements of type T, `step` bytes apart, and the reverse. */
INLINE vf lanes_load(const char *from, int64_t step, int n, trine_dtype T) {
    if (step == (int64_t)vsize(T)) return n == VL ? vload(from, T, 0) : vloadn(from, T, 0, n, 0);
    vf r = vzero();
    for (int i = 0; i < n; i++) r[i] = sload(from + i * step, T, 0);
    return r;
}
INLINE void lanes_store(char *to, int64_t step, int n, vf x, trine_dtype T) {
    if (step == (int64_t)vsize(T) && n == VL)
        vstore(to, T, 0, x);
    else if (step == (int64_t)vsize(T))
        vstoren(to, T, 0, n, x);
    else
        for (int i = 0; i < n; i++) sstore(to + i * step, T, 0, x[i]);
}

/* `places` by `channels` elements of type T, from lines along one of the two to places of channels of type O. */
INLINE void copy_plane(char *to, int64_t to_place, const char *from, int64_t place, int64_t channel, int64_t places,
                       int64_t channels, trine_dtype O, trine_dtype T) {
    const int64_t size = (int64_t)vsize(T), made = (int64_t)vsize(O);
    const bool across = channel != size && place == size;
    for (int64_t i = 0; !across && i < places; i++)
        for (int64_t c = 0; c < channels; c += VL) {
            const int n = (int)conv_least(channels - c, VL);
            lanes_store(to + i * to_place + c * made, made, n,
                        lanes_load(from + i * place + c * channel, channel, n, T), O);
        }
    for (int64_t c = 0; across && c < channels; c += VL)
        for (int64_t i = 0; i < places; i += VL) {
            const int wide = (int)conv_least(places - i, VL), high = (int)conv_least(channels - c, VL);
            vi r[VL];
#pragma GCC unroll 16
            for (int k = 0; k < VL; k++)
                r[k] = k < high ? (vi)lanes_load(from + (c + k) * channel + i * place, size, wide, T) : (vi){ 0 };
            unit_transpose(r, UNIT_F32);
#pragma GCC unroll 16
            for (int k = 0; k < VL; k++)
                if (k < wide) lanes_store(to + (i + k) * to_place + c * made, made, high, (vf)r[k], O);
        }
}

/* Images from one layout to another, whose channels lie side by side and have the type of the units. */
typedef struct image_copy {
    conv_view from, to;
    int64_t in[3], channels;
    trine_dtype type;
    unit_kind kind;
} image_copy;

INLINE void copy_row_as(const image_copy *a, char *to, const char *from, trine_dtype T) {
    if (a->kind == UNIT_BF16)
        copy_plane(to, a->to.axis[2], from, a->from.axis[2], a->from.channel, a->in[2], a->channels, T, T);
    else
        copy_plane(to, a->to.axis[2], from, a->from.axis[2], a->from.channel, a->in[2], a->channels, TRINE_F32, T);
}

/* Row i of the places of all images. */
static inline void copy_row(const image_copy *a, int64_t i) {
    const int64_t h = i % a->in[1], d = i / a->in[1] % a->in[0], n = i / (a->in[1] * a->in[0]);
    const char *from = a->from.data + n * a->from.batch + d * a->from.axis[0] + h * a->from.axis[1];
    char *to = a->to.data + n * a->to.batch + d * a->to.axis[0] + h * a->to.axis[1];
    if (a->type != TRINE_F64) {
        FOR_TYPE(a->type, copy_row_as, a, to, from);
        return;
    }
    for (int64_t w = 0; w < a->in[2]; w++)
        conv_copy(to + w * a->to.axis[2], from + w * a->from.axis[2], a->channels, a->from.channel, 8);
}

/* ------------------------------------------------------------------------------------------------- a task's patches */

static const char conv_zeros[PART_UNITS * 8];

/* Elements [first, last) of a part, of run r, where they are: of row i at table[i]. What a run has only in part is
 * copied, as is what lies beyond the edge. */
static inline void run_set(const conv_task *t, const conv_run *r, int64_t begin, int64_t first, int64_t last,
                           const char **table) {
    const conv_product *a = t->a;
    const patches *p = &a->x;
    const conv_axis *w = &p->axis[2];
    const int64_t low = first - r->first, high = last - r->first;
    for (int64_t i = 0, next; i < t->rows; i = next) {
        const conv_place *place = &t->place[i];
        const int64_t z = patches_at(p, place, r, 0), y = patches_at(p, place, r, 1);
        for (next = i; next < t->rows && t->place[next].at[1] == place->at[1] && t->place[next].at[0] == place->at[0] &&
                       t->place[next].image == place->image;)
            next++;
        if (!patches_inside(p, 0, z) || !patches_inside(p, 1, y)) {
            for (int64_t k = i; k < next; k++) table[k] = conv_zeros;
            continue;
        }
        const char *base = place->image + z * p->from.axis[0] + y * p->from.axis[1] + low * p->size;
        const int64_t until = p->merged ? w->in - w->taps + 1 : w->in;
        for (int64_t k = i; k < next; k++) {
            const int64_t x = patches_at(p, &t->place[k], r, 2);
            const bool whole = x >= 0 && x < until;
            table[k] = whole ? base + x * p->from.axis[2] : conv_zeros;
            if (whole || !p->merged) continue;
            if (conv_clamp(-x, w->taps) * p->channels >= high || conv_clamp(w->in - x, w->taps) * p->channels <= low)
                continue;
            char *to = t->x + k * a->line + (first - begin) * p->size;
            patches_row(p, &t->place[k], first, last, to);
            table[k] = to;
        }
    }
    for (int64_t k = t->rows; k < cpu_round_up(t->rows, a->high); k++) table[k] = conv_zeros;
}

/* The runs of a part of the task's patches; how many there are. */
static inline int64_t rows_set(const conv_task *t, int64_t part) {
    const conv_product *a = t->a;
    const int64_t step = unit_depth(a->kind), begin = part * a->part * step, depth = conv_depth(a, part),
                  units = conv_units(a, part), bytes = a->x.size;
    if (depth == 0) return 0;
    if (a->copied) {
        for (int64_t i = 0; i < t->rows; i++) {
            char *to = t->x + i * a->line;
            patches_row(&a->x, &t->place[i], begin, begin + depth, to);
            memset(to + depth * bytes, 0, (size_t)((units * step - depth) * bytes));
            t->table[i] = to;
        }
        for (int64_t i = t->rows; i < cpu_round_up(t->rows, a->high); i++) t->table[i] = conv_zeros;
        t->lengths[0] = units;
        return 1;
    }
    int64_t runs = 0;
    conv_run r = patches_run(&a->x, begin);
    for (int64_t e = begin, end; e < begin + depth; e = end, runs++, patches_next_run(&a->x, &r)) {
        end = conv_least(r.first + a->x.run, begin + depth);
        run_set(t, &r, begin, e, end, t->table + runs * a->tall);
        t->lengths[runs] = (end - e) / step;
    }
    return runs;
}

/* `count` elements of 2 bytes, up to a line of a square, of each of `rows` rows. */
INLINE void squares_piece(char *to, const char *const *table, int64_t done, int64_t rows, int64_t units, const int high,
                          int64_t count) {
    for (int64_t i = 0; i < rows; i += high, to += high * units * 4)
        for (int k = 0; k < high; k++) memcpy(to + k * 64, table[i + k] + done * 2, (size_t)count * 2);
}

/* A part of the task's patches as squares, of the runs that rows_set has found. */
static inline void squares_set(const conv_task *t, int64_t part, int64_t runs) {
    enum { LINE = 32, HIGH = 2 * AMX_SIDE };
    const conv_product *a = t->a;
    const int64_t units = conv_units(a, part), rows = cpu_round_up(t->rows, HIGH);
    int64_t at = 0;
    const char *zeros[TASK_ROWS];
    for (int64_t i = 0; i < rows; i++) zeros[i] = conv_zeros;
    for (int64_t r = 0; r <= runs; r++) {
        const char *const *table = r < runs ? t->table + r * a->tall : zeros;
        const int64_t count = r < runs ? 2 * t->lengths[r] : 2 * units - at;
        for (int64_t done = 0, some; done < count; done += some, at += some) {
            some = conv_least(count - done, LINE - at % LINE);
            char *to = t->squares + at / LINE * HIGH * 64 + at % LINE * 2;
            if (some == LINE)
                squares_piece(to, table, done, rows, units, HIGH, LINE);
            else if (some == LINE / 2)
                squares_piece(to, table, done, rows, units, HIGH, LINE / 2);
            else
                squares_piece(to, table, done, rows, units, HIGH, some);
        }
    }
}

#endif
