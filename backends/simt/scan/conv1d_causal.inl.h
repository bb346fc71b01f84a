/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal on devices: a thread has 16 rows of a channel, which it asks for at once, and the few before them.
 *
 * NOTES. Floor: x and y once; a fifth of x is read again, mostly from L2. */
#include "conv1d.inl.h"
#include "backends/simt/core/math.h"

template <class T, class W> DEVICE void conv1d_causal(const conv_params &p) {
    const int64_t part = block_index() / p.shape.tiles,
                  channel = (block_index() - part * p.shape.tiles) * SCAN_THREADS + thread_index();
    const bool astray = scan_astray(p.shape);
    if (channel >= p.shape.n) return;
    int64_t row = part * CONV_ROWS;
    conv_sequence q = conv_sequence_at(p.shape, astray ? 0 : row);
    typename T::bits x[CONV_ROWS];
    conv_line line;
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
    ENTRY(conv1d_causal_##T##_##W, SCAN_THREADS, conv_params) { conv1d_causal<T, W>(p); }
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
