/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal_backward on devices, in up to three launches: a thread has a channel of a part of the rows, finds dz
 * step by step, holds the last of them for dx, and adds up what the part's own rows give to dweight and dbias; dx0 by a
 * thread of each sequence's channel; the parts are then added in their order.
 *
 * NOTES. Floor: dy and x once, dx once. The few rows behind a part are read again. */
#include "conv1d.inl.h"
#include "backends/simt/core/math.h"

template <class T, class W, int MOST> struct conv_gradient {
    const conv_backward_params &p;
    const int64_t channel;
    conv_line<MOST> line;
    float weight[MOST], dz[MOST], sum[MOST], total; /* dz: of m steps before, as line's x */

    DEVICE conv_gradient(const conv_backward_params &params, int64_t at) : p(params), channel(at), total(0) {
        line.template begin<W>(p, channel);
#pragma unroll
        for (int i = 0; i < MOST; i++) {
            weight[i] = i < p.k ? load_one<W>(p.weight.data, channel * p.weight.row + i) : 0.0f;
            dz[i] = sum[i] = 0;
        }
    }

    DEVICE void push(float slope) {
#pragma unroll
        for (int m = MOST - 1; m > 0; m--) dz[m] = dz[m - 1];
        dz[0] = slope;
    }

    /* The slope at the newest of `count` inputs, from the gradient of what comes out there. */
    DEVICE float slope(float dy, int count) const {
        if (!p.silu) return dy;
        const float z = line.sum(count);
        const logistic s = logistic_of(z);
        return dy * (s.of * fused(z, s.of_minus, 1.0f));
    }
    DEVICE void add(float dz, int count) {
        total += dz;
#pragma unroll
        for (int m = 0; m < MOST; m++)
            if (m < count) sum[m] = fused(dz, line.x[m], sum[m]);
    }

    /* One more step, which is the part's own or not. */
    DEVICE void step(float dy, float x, bool own) {
        line.push(x);
        push(slope(dy, line.count));
        if (own) add(dz[0], line.count);
    }

    /* The sum of taps times slopes, the newest being that of step t; only steps 0 .. steps-1 are there. */
    DEVICE float input(int64_t t, int64_t steps) const {
        float dx = 0;
#pragma unroll
        for (int m = 0; m < MOST; m++)
            if (m < p.k && t - m >= 0 && t - m < steps) dx = fused(weight[m], dz[m], dx);
        return dx;
    }

    /* Step t of a sequence, of which `first` is the first that the thread finds dx of. */
    DEVICE void step_at(const conv_sequence &q, int64_t t, int64_t first, bool own) {
        const int64_t done = t - p.k + 1;
        step(T::get(*conv_at<T>(p.dy, q, t, channel)), T::get(*conv_at<T>(p.x, q, t, channel)), own);
        if (done >= first) *conv_at<T>(p.dx, q, done, channel) = T::put(input(t, q.steps));
    }

    /* Own steps t .. end-1, all of whose taps meet a step that is there and whose dx is the thread's. */
    DEVICE void inner(const conv_sequence &q, int64_t t, int64_t end) {
        struct terms {
            typename T::bits dy, x;
        };
        scan_line<typename T::bits> dy = { conv_at<T>(p.dy, q, t, channel), p.dy.row },
                                    x = { conv_at<T>(p.x, q, t, channel), p.x.row },
                                    dx = { conv_at<T>(p.dx, q, t - p.k + 1, channel), p.dx.row };
        const int k = line.count = p.k;
        scan_each<SCAN_FEW_AHEAD, true>(
            end - t, [&]() { return terms{ dy.next(), x.next() }; },
            [&](const terms &in) {
                line.shift(T::get(in.x));
                push(slope(T::get(in.dy), k));
                add(dz[0], k);
                float sum = 0;
#pragma unroll
                for (int m = 0; m < MOST; m++)
                    if (m < k) sum = fused(weight[m], dz[m], sum);
                dx.next() = T::put(sum);
            });
    }

    /* Steps first .. end-1 of a sequence. */
    DEVICE void steps(const conv_sequence &q, int64_t first, int64_t end) {
        const int64_t behind = end + p.k - 1, stop = behind < q.steps ? behind : q.steps;
        line.template fill<T>(p, q, first, channel);
        int64_t t = first;
#pragma unroll 1
        for (; t < stop; t++) {
            if constexpr (MOST == CONV_FEW) {
                if (t == first + p.k - 1 && t < end) {
                    inner(q, t, end);
                    t = end - 1;
                    continue;
                }
            }
            step_at(q, t, first, t < end);
        }
        for (; t < behind; t++) {
            push(0);
            if (t - p.k + 1 >= first) *conv_at<T>(p.dx, q, t - p.k + 1, channel) = T::put(input(t, q.steps));
        }
    }
};

template <class T, class W, int MOST> DEVICE void conv_parts(const conv_backward_params &p) {
    const int64_t part = block_index() / p.shape.tiles,
                  channel = (block_index() - part * p.shape.tiles) * SCAN_THREADS + thread_index();
    const bool astray = scan_astray(p.shape);
    if (channel >= p.shape.n) return;
    const int64_t begin = part * p.part_rows, end = begin + p.part_rows < p.rows ? begin + p.part_rows : p.rows;
    conv_gradient<T, W, MOST> g(p, channel);
    for (int64_t row = begin; row < end;) {
        const conv_sequence q =
            astray ? conv_sequence{ p.shape.count, 0, 0, p.shape.t } : conv_sequence_at(p.shape, row);
        const int64_t from = conv_begin(p.shape, q), to = from + q.steps < end ? from + q.steps : end;
        if (p.shape.cu && q.number == p.shape.count) {
            for (; row < to; row++) *conv_at<T>(p.dx, q, row - from, channel) = T::put(astray ? not_a_number() : 0.0f);
        } else {
            g.steps(q, row - from, to - from);
        }
        row = to;
    }
    float *const sums = p.sums + part * (p.k + 1) * p.shape.n + channel;
#pragma unroll
    for (int m = 0; m < MOST; m++)
        if (m < p.k) sums[(p.k - 1 - m) * p.shape.n] = astray ? not_a_number() : g.sum[m];
    sums[p.k * p.shape.n] = astray ? not_a_number() : g.total;
}

template <class T, class W> DEVICE void conv_starts(const conv_backward_params &p) {
    const int64_t number = block_index() / p.shape.tiles,
                  channel = (block_index() - number * p.shape.tiles) * SCAN_THREADS + thread_index();
    const bool astray = scan_astray(p.shape);
    if (channel >= p.shape.n) return;
    const conv_sequence q = astray ? conv_sequence{ number, 0, 0, 0 } : conv_sequence_of(p.shape, number);
    conv_gradient<T, W, CONV_MOST> g(p, channel);
    g.line.template fill<T>(p, q, 0, channel);
    for (int t = 0; t < p.k - 1; t++) {
        if (t < q.steps)
            g.step(T::get(*conv_at<T>(p.dy, q, t, channel)), T::get(*conv_at<T>(p.x, q, t, channel)), false);
        else
            g.push(0);
        *conv_state<T>(p.dx0, q, t, channel) = T::put(astray ? not_a_number() : g.input(t, q.steps));
    }
}

/* Row i of the sums of all parts: of tap i, or of the bias. */
template <class W> DEVICE void conv_finish(const conv_backward_params &p) {
    const int64_t i = block_index() / p.shape.tiles,
                  channel = (block_index() - i * p.shape.tiles) * SCAN_THREADS + thread_index();
    if (channel >= p.shape.n) return;
    float sum = 0;
#pragma unroll 8
    for (int64_t part = 0; part < p.parts; part++) sum += p.sums[(part * (p.k + 1) + i) * p.shape.n + channel];
    if (i < p.k)
        store_one<W>(p.dweight.data, channel * p.dweight.row + i, sum);
    else
        store_one<W>(p.dbias, channel, sum);
}

#define CONV_ENTRIES(T, W) \
    ENTRY(conv1d_causal_backward_parts_##T##_##W, SCAN_THREADS, conv_backward_params) { \
        conv_parts<T, W, CONV_MOST>(p); \
    } \
    ENTRY(conv1d_causal_backward_few_##T##_##W, SCAN_THREADS, conv_backward_params) { conv_parts<T, W, CONV_FEW>(p); } \
    ENTRY(conv1d_causal_backward_starts_##T##_##W, SCAN_THREADS, conv_backward_params) { conv_starts<T, W>(p); }
#define CONV_FINISH(W) \
    ENTRY(conv1d_causal_backward_finish_##W, SCAN_THREADS, conv_backward_params) { conv_finish<W>(p); }
CONV_ENTRIES(f32, f32)
CONV_ENTRIES(bf16, bf16)
CONV_ENTRIES(bf16, f32)
CONV_ENTRIES(f16, f16)
CONV_ENTRIES(f16, f32)
CONV_FINISH(f32)
CONV_FINISH(bf16)
CONV_FINISH(f16)
