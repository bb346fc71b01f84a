/* SPDX-License-Identifier: Apache-2.0 */
/* What conv1d_causal and its gradient share on devices: where a row is, and the last steps, newest first. */
#ifndef TRINE_SIMT_CONV1D_INL_H
#define TRINE_SIMT_CONV1D_INL_H

#include "conv1d.h"
#include "scan.inl.h"

/* A sequence: `first` is its first step in its batch; the count in the room behind the last. */
struct conv_sequence {
    int64_t number, batch, first, steps;
};

DEVICE conv_sequence conv_sequence_of(const scan_shape &s, int64_t number) {
    if (!s.cu) return { number, number, 0, s.t };
    const int64_t first = s.cu[number];
    return { number, 0, first, (number < s.count ? s.cu[number + 1] : s.t) - first };
}

/* The one that has a row of all batches. */
DEVICE conv_sequence conv_sequence_at(const scan_shape &s, int64_t row) {
    if (!s.cu) return conv_sequence_of(s, row / s.t);
    int64_t low = 0, high = s.count;
    if (row >= s.cu[s.count]) return conv_sequence_of(s, s.count);
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (s.cu[middle] <= row ? low : high) = middle;
    }
    return conv_sequence_of(s, low);
}

/* Where its first row is among those of all batches. */
DEVICE int64_t conv_begin(const scan_shape &s, const conv_sequence &q) { return q.batch * s.t + q.first; }

template <class T>
DEVICE typename T::bits *conv_at(const simt_rows &rows, const conv_sequence &q, int64_t step, int64_t channel) {
    return (typename T::bits *)rows.data + q.batch * rows.batch + (q.first + step) * rows.row + channel;
}
template <class T>
DEVICE typename T::bits *conv_state(const simt_rows &rows, const conv_sequence &q, int64_t row, int64_t channel) {
    return (typename T::bits *)rows.data + q.number * rows.batch + row * rows.row + channel;
}

/* A channel's taps, up to MOST, the newest step's first, and what they meet: element m is that of m steps before. */
template <int MOST> struct conv_line {
    float tap[MOST], x[MOST], bias;
    int count, k; /* of those that there are */

    template <class W, class Params> DEVICE void begin(const Params &p, int64_t channel) {
        k = p.k, count = 0;
#pragma unroll
        for (int m = 0; m < MOST; m++)
            tap[m] = m < k ? load_one<W>(p.weight.data, channel * p.weight.row + k - 1 - m) : 0.0f;
        bias = p.bias ? load_one<W>(p.bias, channel) : 0.0f;
    }

    /* What is there before step t; the room behind the last sequence has no state. */
    template <class T, class Params>
    DEVICE void fill(const Params &p, const conv_sequence &q, int64_t t, int64_t channel) {
        const bool state = p.x0.data && q.number < p.shape.count;
#pragma unroll
        for (int m = 0; m < MOST - 1; m++) {
            const int64_t at = t - 1 - m;
            x[m] = 0;
            if (m >= k - 1) continue;
            if (at >= 0)
                x[m] = T::get(*conv_at<T>(p.x, q, at, channel));
            else if (state)
                x[m] = T::get(*conv_state<T>(p.x0, q, k - 1 + at, channel));
        }
        count = state || t >= k ? k : (int)t;
    }

    DEVICE void shift(float newest) {
#pragma unroll
        for (int m = MOST - 1; m > 0; m--) x[m] = x[m - 1];
        x[0] = newest;
    }
    DEVICE void push(float newest) {
        shift(newest);
        count += count < k;
    }

    DEVICE float sum() const { return sum(count); }
    DEVICE float sum(int count) const {
        float z = bias;
#pragma unroll
        for (int m = 0; m < MOST; m++)
            if (m < count) z = fused(tap[m], x[m], z);
        return z;
    }
};

#endif
