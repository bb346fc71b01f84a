/* SPDX-License-Identifier: Apache-2.0 */
/* The two products of attention without tensor cores, for blocks of 256 threads and tiles of 64 x 64: thread t has
 * lanes t/16*4 to t/16*4+3 of the left operand and t%16*4 to t%16*4+3 of the right one. */
#ifndef TRINE_CUDA_ATTENTION_TILE_H
#define TRINE_CUDA_ATTENTION_TILE_H

#include "attention_sight.h"

enum {
    ATTENTION_PITCH = ATTENTION_SIDE + 4,
    ATTENTION_DEPTH = 32, /* columns of a slice */
    ATTENTION_BUFFER = 2 * ATTENTION_DEPTH * ATTENTION_PITCH,
    ATTENTION_WEIGHTS = ATTENTION_SIDE * ATTENTION_PITCH,
};

/* A block's part: heads run fastest, then columns; the last tiles, which see most under a causal mask, come first. */
struct attention_place {
    int batch, head, first, column;
};
DEVICE attention_place attention_place_of(const attention_problem &p, int tiles, int columns, int side, int width,
                                          int heads) {
    const int64_t block = block_index(), heads_all = (int64_t)heads * p.b, rest = block / heads_all;
    const int plane = (int)(block - rest * heads_all), tile = tiles - 1 - (int)(rest / columns);
    return { plane / heads, plane % heads, tile * side, (int)(rest % columns) * width };
}

/* Up to 64 tokens of a head; what lies beyond is 0, and so are tokens that see nothing if `seen` says so. */
template <class T> struct attention_lanes {
    const typename T::bits *at;
    int64_t step;
    int count;
    const attention_sight *sees; /* nullptr: all count */

    DEVICE attention_lanes(const attention_tensor &t, int batch, int first, int n, int head,
                           const attention_sight *seen = nullptr)
        : at(attention_row<T>(t, batch, first, head)), step(t.token), count(n), sees(seen) {}
    DEVICE float get(int lane, int column, int columns) const {
        return lane < count && column < columns && (sees == nullptr || !sees[lane].none())
                   ? T::get(at[lane * step + column])
                   : 0.0f;
    }
};

/* What the block's lanes see, together. */
DEVICE attention_span attention_span_over(const attention_sight (&sees)[4], int first, int end) {
    attention_span span = attention_span_of(sees[0], first < end);
#pragma unroll
    for (int i = 1; i < 4; i++) {
        const attention_span more = attention_span_of(sees[i], first + i < end);
        span.any = { lesser(span.any.low, more.any.low), greater(span.any.high, more.any.high) };
        span.all = { greater(span.all.low, more.all.low), lesser(span.all.high, more.all.high) };
    }
    const int low = group_combine<ATTENTION_THREADS>(span.any.low, attention_least()),
              high = group_combine<ATTENTION_THREADS>(span.any.high, attention_most());
    span.all.low = group_combine<ATTENTION_THREADS>(span.all.low, attention_most());
    span.all.high = group_combine<ATTENTION_THREADS>(span.all.high, attention_least());
    return { { low, high }, span.all };
}

/* sum[i][j] += x_i . y_j over all columns. */
template <class X, class Y>
DEVICE void attention_product(float (&sum)[4][4], const X &x, const Y &y, int columns, float *buffer) {
    float *const left = buffer, *const right = buffer + ATTENTION_DEPTH * ATTENTION_PITCH;
    const int thread = thread_index(), down = thread / 16 * 4, across = thread % 16 * 4,
              column = thread % ATTENTION_DEPTH;
#pragma unroll 1
    for (int c = 0; c < columns; c += ATTENTION_DEPTH) {
        sync_block();
#pragma unroll
        for (int lane = thread / ATTENTION_DEPTH; lane < ATTENTION_SIDE; lane += ATTENTION_THREADS / ATTENTION_DEPTH) {
            left[column * ATTENTION_PITCH + lane] = x.get(lane, c + column, columns);
            right[column * ATTENTION_PITCH + lane] = y.get(lane, c + column, columns);
        }
        sync_block();
#pragma unroll 4
        for (int k = 0; k < ATTENTION_DEPTH; k++) {
            const packed<float, 4> a = *(const packed<float, 4> *)(left + k * ATTENTION_PITCH + down);
            const packed<float, 4> b = *(const packed<float, 4> *)(right + k * ATTENTION_PITCH + across);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] = fused(a.v[i], b.v[j], sum[i][j]);
        }
    }
}

/* A tile of weights for attention_gather(): its sums run over the right lanes if they are TURNED, over the left ones
 * otherwise. */
template <bool TURNED> DEVICE void attention_put(float *weights, const float (&w)[4][4]) {
    const int down = thread_index() / 16 * 4, across = thread_index() % 16 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        packed<float, 4> four;
#pragma unroll
        for (int j = 0; j < 4; j++) four.v[j] = TURNED ? w[j][i] : w[i][j];
        *(packed<float, 4> *)(weights + (TURNED ? across + i : down + i) * ATTENTION_PITCH + (TURNED ? down : across)) =
            four;
    }
}

template <bool WHOLE>
DEVICE void attention_gather_64(float (&sum)[4][4], const float *weights, const float *values, int first,
                                const attention_sight (&sees)[4]) {
    const int down = thread_index() / 16 * 4, across = thread_index() % 16 * 4;
#pragma unroll 2
    for (int k = 0; k < ATTENTION_SIDE; k++) {
        const packed<float, 4> a = *(const packed<float, 4> *)(weights + k * ATTENTION_PITCH + down);
        const packed<float, 4> b = *(const packed<float, 4> *)(values + k * ATTENTION_SIDE + across);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool seen = WHOLE || sees[i].has(first + k);
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] = seen ? fused(a.v[i], b.v[j], sum[i][j]) : sum[i][j];
        }
    }
}

/* sum[c][i][j] += sum over the 64 tokens from `first` on of weight and value, those alone that lane i sees: a weight of
 * 0 must not meet a NaN. `whole`: all lanes see all of them. */
template <int D, class V>
DEVICE void attention_gather(float (&sum)[D / 64][4][4], const float *weights, const V &values, int first, bool whole,
                             const attention_sight (&sees)[4], int column, int columns, float *buffer) {
#pragma unroll
    for (int c = 0; c < D / 64; c++) {
        sync_block();
#pragma unroll 4
        for (int i = thread_index(); i < ATTENTION_SIDE * 64; i += ATTENTION_THREADS)
            buffer[i] = values.get(i / 64, column + c * 64 + i % 64, columns);
        sync_block();
        if (whole)
            attention_gather_64<true>(sum[c], weights, buffer, first, sees);
        else
            attention_gather_64<false>(sum[c], weights, buffer, first, sees);
    }
    sync_block();
}

#endif
