/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of which each channel is a group, on devices, and their gradients: a thread has 16 bytes of neighbouring
 * channels.
 *
 * NOTES. Floor: what is read and written once each; then the reads of each tap from L1. A thread writes CONV_ROW
 * neighbours of a line, so that a tap's weights serve as many; they lie in shared memory, converted. */
#ifndef TRINE_SIMT_CONV_DEPTHWISE_INL_H
#define TRINE_SIMT_CONV_DEPTHWISE_INL_H

#include "conv.inl.h"

/* Channels of a thread, threads of CONV_CHANNELS and how often a block has those. */
template <class T> struct depthwise_shape {
    using bits = typename T::bits;
    using sum_type = typename conv_summed<T>::type;
    enum {
        V = 16 / sizeof(bits),
        LANES = CONV_CHANNELS / V,
        WORKERS = SIMT_THREADS / LANES,
        Q = 16 / sizeof(sum_type),          /* sums of a word of shared memory */
        WORDS = CONV_CHANNELS / Q + (Q > 2) /* of f64 as many as let a CU hold two blocks */
    };
    using word = packed<sum_type, Q>;

    /* Channels that are neighbours in memory, `count` of them at most; zeros unless `yes`. */
    static DEVICE void load(sum_type (&v)[V], const bits *from, bool yes, bool whole, int64_t count) {
        packed<bits, V> raw = {};
        if (whole) {
            if (yes) raw = *(const packed<bits, V> *)from;
        } else {
#pragma unroll
            for (int i = 0; i < V; i++)
                if (yes && i < count) raw.v[i] = from[i];
        }
#pragma unroll
        for (int i = 0; i < V; i++) v[i] = T::get(raw.v[i]);
    }
};

/* The weights of `span` taps from `first` on, of a block's channels. */
template <class T>
DEVICE void depthwise_weights(typename depthwise_shape<T>::word (*weight)[depthwise_shape<T>::WORDS],
                              const conv_params &p, const conv_walks &k, int64_t channel, int first, int span) {
    enum { Q = depthwise_shape<T>::Q };
    sync_block();
    for (int i = thread_index(); i < span * CONV_CHANNELS; i += SIMT_THREADS) {
        const int tap = i % span, own = i / span;
        weight[tap][own / Q].v[own % Q] =
            channel + own < p.groups ? conv_weight<T>(p, k, channel + own, 0, conv_element(k, 1, first + tap)) : 0;
    }
    sync_block();
}

template <class T, bool TRANSPOSED> DEVICE void conv_depthwise(const conv_params &p) {
    using shape = depthwise_shape<T>;
    using bits = typename shape::bits;
    using sum_type = typename shape::sum_type;
    enum { V = shape::V, Q = shape::Q, WORKERS = shape::WORKERS, ROW = CONV_ROW };
    SHARED typename shape::word weight[CONV_WEIGHTS][shape::WORDS];
    const int64_t block = block_index() % p.right * CONV_CHANNELS, tile = block_index() / p.right;
    const conv_walks k(p.axis, TRANSPOSED, tile / p.down);
    const int lane = thread_index() % shape::LANES * V;
    const int64_t wide = (k.w.positions + ROW - 1) / ROW, units = p.n * k.d.positions * k.h.positions * wide,
                  first = tile % p.down * (WORKERS * CONV_TURNS), channel = block + lane, count = p.groups - channel;
    const int taps = k.taps(), wide_taps = k.w.taps, high_taps = k.h.taps, step = (int)k.w.step;
    const int over_d = (int)k.d.dilation, over_h = (int)k.h.dilation, over_w = (int)k.w.dilation;
    const int deep = (int)k.d.in, high = (int)k.h.in, right = (int)k.w.in;
#pragma unroll 1
    for (int turn = 0; turn < CONV_TURNS && first + turn * WORKERS < units; turn++) {
        const int64_t unit = first + turn * WORKERS + thread_index() / shape::LANES;
        const bool there = unit < units && count > 0;
        conv_position at;
        at.w = unit % wide * ROW, at.h = unit / wide % k.h.positions;
        at.d = unit / (wide * k.h.positions) % k.d.positions, at.n = unit / (wide * k.h.positions * k.d.positions);
        const int z = (int)(k.d.first + at.d * k.d.step), y = (int)(k.h.first + at.h * k.h.step),
                  x = (int)(k.w.first + at.w * k.w.step);
        const bits *const image = (const bits *)p.from.data + at.n * p.from.batch + channel;
        bits *const to = (bits *)p.to.data + conv_to(p, k, at) + channel;
        const int64_t apart = k.w.apart * p.to.axis[2];
        const int left = !there ? 0 : k.w.positions - at.w < ROW ? (int)(k.w.positions - at.w) : (int)ROW;
        sum_type sum[ROW][V] = {};
#pragma unroll 1
        for (int begin = 0; begin < taps; begin += CONV_WEIGHTS) {
            const int span = taps - begin < CONV_WEIGHTS ? taps - begin : (int)CONV_WEIGHTS;
            if (turn == 0 || taps > CONV_WEIGHTS) depthwise_weights<T>(weight, p, k, block, begin, span);
            int w_tap = begin % wide_taps, h_tap = begin / wide_taps % high_taps,
                d_tap = begin / (wide_taps * high_taps);
#pragma unroll 1 /* more would cost half of the threads */
            for (int tap = 0; tap < span; tap++) {
                const int zt = z + d_tap * over_d, yt = y + h_tap * over_h, xt = x + w_tap * over_w;
                const bool line = there && zt >= 0 && zt < deep && yt >= 0 && yt < high;
                const bits *const from = image + zt * p.from.axis[0] + yt * p.from.axis[1];
                sum_type w[V];
#pragma unroll
                for (int i = 0; i < V; i += Q) {
                    const typename shape::word word = weight[tap][(lane + i) / Q];
#pragma unroll
                    for (int j = 0; j < Q; j++) w[i + j] = word.v[j];
                }
#pragma unroll
                for (int i = 0; i < ROW; i++) {
                    const int own = xt + i * step;
                    sum_type v[V];
                    shape::load(v, from + own * p.from.axis[2], line && own >= 0 && own < right, p.whole, count);
#pragma unroll
                    for (int j = 0; j < V; j++) sum[i][j] = conv_fused(v[j], w[j], sum[i][j]);
                }
                if (++w_tap < wide_taps) continue;
                w_tap = 0;
                if (++h_tap == high_taps) h_tap = 0, d_tap++;
            }
        }
#pragma unroll
        for (int i = 0; i < ROW; i++) {
            if (i >= left) continue;
            bits *const own = to + i * apart;
            bits v[V];
#pragma unroll
            for (int j = 0; j < V; j++) v[j] = j < count ? T::put(conv_biased<T>(p, channel + j, sum[i][j])) : bits(0);
            if (p.to_whole)
                store_whole(v, own);
            else
#pragma unroll
                for (int j = 0; j < V; j++)
                    if (j < count) own[j] = v[j];
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- gradients */

/* What the workers of a block have of its channels, added in their order; thread i gets that of channel i. */
template <class T, int V, class Sum> DEVICE Sum depthwise_total(const Sum (&v)[V]) {
    using shape = depthwise_shape<T>;
    SHARED Sum part[shape::WORKERS][CONV_CHANNELS + 1];
    const int thread = thread_index();
    sync_block();
#pragma unroll
    for (int i = 0; i < V; i++) part[thread / shape::LANES][thread % shape::LANES * V + i] = v[i];
    sync_block();
    Sum total = 0;
    if (thread < CONV_CHANNELS)
        for (int i = 0; i < shape::WORKERS; i++) total += part[i][thread];
    return total;
}

/* Of the weights: a block has CONV_OWN_TAPS taps of CONV_CHANNELS channels, its workers positions in turns. */
template <class T> DEVICE void gradient_depthwise(const conv_gradient_params &p) {
    using shape = depthwise_shape<T>;
    using bits = typename shape::bits;
    using sum_type = typename shape::sum_type;
    enum { V = shape::V, TAPS = CONV_OWN_TAPS };
    const int64_t block = block_index() % p.right * CONV_CHANNELS, taps = block_index() / p.right % p.down * TAPS,
                  slice = block_index() / (p.right * p.down), begin = slice * p.slice,
                  last = begin + p.slice < p.positions ? begin + p.slice : p.positions,
                  first = begin + thread_index() / shape::LANES, channel = block + thread_index() % shape::LANES * V,
                  count = p.groups - channel;
    const conv_walks k(p.axis, false, 0);
    const bits *const x = (const bits *)p.x.data + channel, *const dy = (const bits *)p.dy.data + channel;
    int over[TAPS][3];
    sum_type sum[TAPS][V] = {};
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
        const conv_element e(k, 1, (int32_t)(taps + t < p.elements ? taps + t : 0));
        over[t][0] = e.d * (int)k.d.dilation, over[t][1] = e.h * (int)k.h.dilation;
        over[t][2] = e.w * (int)k.w.dilation;
    }
    if (first < last && count > 0) {
        conv_position at(k, first);
#pragma unroll 1
        for (int64_t i = first; i < last; i += shape::WORKERS, at.advance(k, shape::WORKERS)) {
            sum_type d[V];
            shape::load(d, dy + at.n * p.dy.batch + at.d * p.dy.axis[0] + at.h * p.dy.axis[1] + at.w * p.dy.axis[2],
                        true, p.dy_whole, count);
            const int z = (int)(k.d.first + at.d * k.d.step), y = (int)(k.h.first + at.h * k.h.step),
                      w = (int)(k.w.first + at.w * k.w.step);
            const bits *const image = x + at.n * p.x.batch;
#pragma unroll
            for (int t = 0; t < TAPS; t++) {
                const int zt = z + over[t][0], yt = y + over[t][1], wt = w + over[t][2];
                const bool inside = zt >= 0 && zt < k.d.in && yt >= 0 && yt < k.h.in && wt >= 0 && wt < k.w.in;
                sum_type v[V];
                shape::load(v, image + zt * p.x.axis[0] + yt * p.x.axis[1] + wt * p.x.axis[2], inside, p.whole, count);
#pragma unroll
                for (int j = 0; j < V; j++) sum[t][j] = conv_fused(d[j], v[j], sum[t][j]);
            }
        }
    }
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
        const sum_type total = depthwise_total<T>(sum[t]);
        const int64_t own = block + thread_index();
        if (thread_index() < CONV_CHANNELS && own < p.groups && taps + t < p.elements)
            ((sum_type *)p.sums)[(slice * p.groups + own) * p.elements + taps + t] = total;
    }
}

/* Of the bias: a block has CONV_CHANNELS channels, its workers positions in turns. */
template <class T> DEVICE void gradient_bias(const conv_gradient_params &p) {
    using shape = depthwise_shape<T>;
    using bits = typename shape::bits;
    using sum_type = typename shape::sum_type;
    enum { V = shape::V };
    const int64_t block = block_index() % p.right * CONV_CHANNELS, slice = block_index() / p.right,
                  begin = slice * p.slice, last = begin + p.slice < p.positions ? begin + p.slice : p.positions,
                  first = begin + thread_index() / shape::LANES, channel = block + thread_index() % shape::LANES * V,
                  count = p.rows - channel;
    const conv_walks k(p.axis, false, 0);
    const bits *const dy = (const bits *)p.dy.data + channel * p.dy.channel;
    sum_type sum[V] = {};
    if (first < last && count > 0) {
        conv_position at(k, first);
        for (int64_t i = first; i < last; i += shape::WORKERS, at.advance(k, shape::WORKERS)) {
            const bits *const from =
                dy + at.n * p.dy.batch + at.d * p.dy.axis[0] + at.h * p.dy.axis[1] + at.w * p.dy.axis[2];
            sum_type v[V] = {};
            if (p.dy_whole)
                shape::load(v, from, true, true, count);
            else
#pragma unroll
                for (int j = 0; j < V; j++)
                    if (j < count) v[j] = T::get(from[j * p.dy.channel]);
#pragma unroll
            for (int j = 0; j < V; j++) sum[j] += v[j];
        }
    }
    const sum_type total = depthwise_total<T>(sum);
    const int64_t own = block + thread_index();
    if (thread_index() < CONV_CHANNELS && own < p.rows) ((sum_type *)p.sums)[slice * p.rows + own] = total;
}

/* The functions of the forward of a type, the last argument being its tiles. */
#define CONV_ENTRIES(OP, T, ...) \
    ENTRY(OP##_few_##T, SIMT_THREADS, conv_params) { conv_few<T>(p); } \
    ENTRY(OP##_##T, SIMT_THREADS, conv_params) { __VA_ARGS__(p); } \
    ENTRY_HELD(OP##_depthwise_##T, SIMT_THREADS, CONV_HELD, conv_params) { conv_depthwise<T, false>(p); } \
    ENTRY(OP##_end_##T, SIMT_THREADS, conv_params) { conv_end<T>(p); }

#endif
