/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal on devices: a thread has 16 rows of a channel, which it asks for at once, and the few before them; or,
 * of up to 4 taps, of two channels. Where these are within a sequence nothing is asked of each step.
 *
 * NOTES. Floor: x and y once; a fifth of x is read again, mostly from L2. */
#include "conv1d.inl.h"
#include "backends/simt/core/math.h"

template <class T, class W>
DEVICE void conv1d_causal_rows(const conv_params &p, int64_t row, int64_t channel, bool astray) {
    conv_sequence q = conv_sequence_at(p.shape, astray ? 0 : row);
    typename T::bits x[CONV_ROWS];
    conv_line<CONV_MOST> line;
    line.begin<W>(p, channel);
    const int64_t batch = row / p.shape.t, step = row - batch * p.shape.t;
    int64_t at_batch = batch, at_step = step;
#pragma unroll
    for (int i = 0; i < CONV_ROWS; i++) {
        if (row + i < p.rows)
            x[i] = ((const typename T::bits *)p.x.data)[at_batch * p.x.batch + at_step * p.x.row + channel];
        if (++at_step == p.shape.t) at_step = 0, at_batch++;
    }
    at_batch = batch, at_step = step;
    int64_t t = row - conv_begin(p.shape, q);
    if (!astray) line.fill<T>(p, q, t, channel);
#pragma unroll
    for (int i = 0; i < CONV_ROWS; i++) {
        if (row + i >= p.rows) return;
        if (!astray && t == q.steps) {
            q = conv_sequence_at(p.shape, row + i), t = 0;
            line.fill<T>(p, q, 0, channel);
        }
        line.push(T::get(x[i]));
        const float z = line.sum();
        float y = p.silu ? z * sigmoid(z) : z;
        if (p.shape.cu && q.number == p.shape.count) y = 0;
        if (astray) y = not_a_number();
        ((typename T::bits *)p.y.data)[at_batch * p.y.batch + at_step * p.y.row + channel] = T::put(y);
        if (++at_step == p.shape.t) at_step = 0, at_batch++;
        t++;
    }
}

template <class T, class W> DEVICE void conv1d_causal(const conv_params &p) {
    const int64_t part = block_index() / p.shape.tiles,
                  channel = (block_index() - part * p.shape.tiles) * SCAN_THREADS + thread_index();
    const bool astray = scan_astray(p.shape);
    if (channel < p.shape.n) conv1d_causal_rows<T, W>(p, part * CONV_ROWS, channel, astray);
}

/* Channels that a thread has next to each other, which are one access: two of 16 bits. */
template <class T> constexpr int CONV_WIDE = 4 / sizeof(typename T::bits);

/* The same of up to CONV_FEW taps and channels that are aligned. The rows of a thread that are not within a sequence,
 * or have fewer than k - 1 steps before them, are those of conv1d_causal. */
template <class T, class W> DEVICE void conv1d_causal_few(const conv_params &p) {
    constexpr int WIDE = CONV_WIDE<T>;
    const int64_t part = block_index() / p.wide_tiles,
                  channel = ((block_index() - part * p.wide_tiles) * SCAN_THREADS + thread_index()) * WIDE;
    const int64_t row = part * CONV_ROWS;
    const bool astray = scan_astray(p.shape);
    if (channel >= p.shape.n) return;
    const conv_sequence q = conv_sequence_at(p.shape, astray ? 0 : row);
    const int64_t t = row - conv_begin(p.shape, q);
    if (astray || t < p.k - 1 || t + CONV_ROWS > q.steps || q.number >= p.shape.count) {
#pragma unroll 1
        for (int c = 0; c < WIDE; c++) conv1d_causal_rows<T, W>(p, row, channel + c, astray);
        return;
    }
    const typename T::bits *const from = conv_at<T>(p.x, q, t, channel);
    typename T::bits *to = (typename T::bits *)p.y.data + q.batch * p.y.batch + (q.first + t) * p.y.row + channel;
    held<T, WIDE> x[CONV_ROWS + CONV_FEW - 1]; /* from k - 1 steps before on */
#pragma unroll
    for (int i = 0; i < CONV_ROWS + CONV_FEW - 1; i++)
        if (i >= CONV_FEW - p.k) x[i] = *(const held<T, WIDE> *)(from + (i - CONV_FEW + 1) * p.x.row);
    float tap[WIDE][CONV_FEW], bias[WIDE];
#pragma unroll
    for (int c = 0; c < WIDE; c++) {
#pragma unroll
        for (int m = 0; m < CONV_FEW; m++)
            tap[c][m] = m < p.k ? load_one<W>(p.weight.data, (channel + c) * p.weight.row + p.k - 1 - m) : 0.0f;
        bias[c] = p.bias ? load_one<W>(p.bias, channel + c) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < CONV_ROWS; i++, to += p.y.row) {
        float y[WIDE];
#pragma unroll
        for (int c = 0; c < WIDE; c++) {
            float z = bias[c];
#pragma unroll
            for (int m = 0; m < CONV_FEW; m++)
                if (m < p.k) z = fused(tap[c][m], x[i + CONV_FEW - 1 - m].get(c), z);
            y[c] = p.silu ? z * sigmoid(z) : z;
        }
        *(held<T, WIDE> *)to = held_of<T>(y);
    }
}

template <class T> DEVICE void conv1d_causal_last(const conv_params &p) {
    const int64_t number = block_index() / p.shape.tiles,
                  channel = (block_index() - number * p.shape.tiles) * SCAN_THREADS + thread_index();
    const bool astray = scan_astray(p.shape);
    if (channel >= p.shape.n) return;
    const conv_sequence q = astray ? conv_sequence{ number, 0, 0, 0 } : conv_sequence_of(p.shape, number);
    for (int row = 0; row < p.k - 1; row++) {
        const int64_t at = q.steps - p.k + 1 + row;
        typename T::bits x = T::put(astray ? not_a_number() : 0.0f);
        if (!astray && at >= 0)
            x = *conv_at<T>(p.x, q, at, channel);
        else if (!astray && p.x0.data)
            x = *conv_state<T>(p.x0, q, p.k - 1 + at, channel);
        *conv_state<T>(p.last, q, row, channel) = x;
    }
}

#define CONV_ENTRY(T, W) \
    ENTRY(conv1d_causal_##T##_##W, SCAN_THREADS, conv_params) { conv1d_causal<T, W>(p); } \
    ENTRY(conv1d_causal_few_##T##_##W, SCAN_THREADS, conv_params) { conv1d_causal_few<T, W>(p); }
#define CONV_LAST(T) \
    ENTRY(conv1d_causal_last_##T, SCAN_THREADS, conv_params) { conv1d_causal_last<T>(p); }
CONV_ENTRY(f32, f32)
CONV_ENTRY(bf16, bf16)
CONV_ENTRY(bf16, f32)
CONV_ENTRY(f16, f16)
CONV_ENTRY(f16, f32)
CONV_LAST(f32)
CONV_LAST(bf16)
CONV_LAST(f16)
