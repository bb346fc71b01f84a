/* SPDX-License-Identifier: Apache-2.0 */
/* A block's columns of a state, and what takes them step by step. */
#ifndef TRINE_CUDA_STATE_MMA_STATE_H
#define TRINE_CUDA_STATE_MMA_STATE_H

#include "state_mma_chunk.h"

/* Of a block's state, rows D / 4 warp + 16 i + 8 (e / 2) + lane / 4, columns 8 c + lane % 4 * 2 + e % 2. */
template <int D> struct state_mma_state {
    enum { TILES = D / 64, COLUMNS = STATE_MMA_OWN / 8 };
    float x[TILES][COLUMNS][4];

    static DEVICE int row(int i, int e) {
        return state_mma_place().warp * (D / 4) + i * 16 + e / 2 * 8 + thread_index() % WARP / 4;
    }
    static DEVICE int column(int c, int e) { return state_mma_place().column + c * 8 + e % 2; }

    template <class Each> DEVICE void each(Each what) {
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                for (int e = 0; e < 4; e++) what(x[i][c][e], i * 16 + e / 2 * 8, c * 8 + e % 2);
    }
    /* Each with its place in a tensor of states, as far as that has it. */
    template <class Each>
    DEVICE void each_there(const state_matrices &t, const state_shape &s, const state_task &a, Each what) {
        const int64_t right = a.block * STATE_MMA_WIDTH + column(0, 0), rows = s.d - row(0, 0), columns = s.e - right;
        float *const at = state_row(t, a, row(0, 0), right);
        each([&](float &one, int r, int c) {
            if (r < rows && c < columns) what(one, at + r * t.row + c * t.column);
        });
    }
    DEVICE void load(const state_matrices &from, const state_shape &s, const state_task &a) {
        each([](float &to, int, int) { to = 0; });
        if (from.data)
            each_there(from, s, a, [](float &to, const float *at) { to = *at == *at ? *at : not_a_number(); });
    }
    DEVICE void save(const state_matrices &to, const state_shape &s, const state_task &a) {
        if (to.data) each_there(to, s, a, [&](float &from, float *at) { *at = a.astray ? not_a_number() : from; });
    }
    /* In parts; columns that hold too large a number are wild. */
    DEVICE void put(char (&to)[STATE_MMA_PARTS][D * STATE_MMA_ROW(STATE_MMA_WIDTH)], int *wild) {
        const int place = row(0, 0) * STATE_MMA_ROW(STATE_MMA_WIDTH) + column(0, 0) * 2;
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                for (int e = 0; e < 4; e += 2) {
                    const float one = x[i][c][e], two = x[i][c][e + 1];
                    uint32_t part[STATE_MMA_PARTS];
                    state_mma_split_any(one, two, part);
                    if (!(magnitude(one) < STATE_MMA_MOST_STATE)) wild[column(c, 0)] = 1;
                    if (!(magnitude(two) < STATE_MMA_MOST_STATE)) wild[column(c, 1)] = 1;
#pragma unroll
                    for (int j = 0; j < STATE_MMA_PARTS; j++)
                        *(uint32_t *)(to[j] + place + (i * 16 + e / 2 * 8) * STATE_MMA_ROW(STATE_MMA_WIDTH) + c * 16) =
                            part[j];
                }
    }
};

/* state += k^T added, of a chunk's steps. */
template <int D, int INPUTS, int KEYS, int VALUES>
DEVICE void state_mma_gain(state_mma_state<D> &h, const char (&k)[INPUTS][KEYS],
                           const char (&added)[STATE_MMA_PARTS][VALUES]) {
    const state_mma_place place;
#pragma unroll 1
    for (int step = 0; step < STATE_MMA_STEPS; step += 16)
#pragma unroll
        for (int i = 0; i < state_mma_state<D>::TILES; i++) {
            uint32_t x[INPUTS][4];
#pragma unroll
            for (int j = 0; j < INPUTS; j++)
                state_mma_left_turned(x[j], k[j], STATE_MMA_ROW(D), place.warp * (D / 4) + i * 16, step);
#pragma unroll
            for (int c = 0; c < STATE_MMA_OWN / 8; c += 2)
#pragma unroll
                for (int l = STATE_MMA_PARTS - 1; l >= 0; l--) {
                    uint32_t y[4];
                    state_mma_right_turned(y, added[l], STATE_MMA_ROW(STATE_MMA_WIDTH), step, place.share + c * 8);
#pragma unroll
                    for (int j = 0; j < INPUTS; j++) state_mma_add(h.x[i][c], h.x[i][c + 1], x[j], y);
                }
        }
}

/* An element of a state in shared memory. */
template <int BYTES> DEVICE float state_mma_element(const char (&h)[STATE_MMA_PARTS][BYTES], int place) {
    const float first = bf16::get(*(const uint16_t *)(h[0] + place));
    return magnitude(first) < infinity() ? state_mma_one(h, place) : first;
}

/* The wild columns of a chunk, or all of it, step by step, each by a warp; the states that they lead to take the place
 * of those in shared memory. */
template <int D, int INPUTS>
DEVICE_CALLED void state_mma_alone(const state_mma_params &p, state_mma_memory<D, INPUTS> &m, const state_task &a,
                                   int64_t first, int n, const int *wild) {
    using Memory = state_mma_memory<D, INPUTS>;
    const state_shape &shape = p.all.shape;
    const int lane = thread_index() % WARP;
#pragma unroll 1
    for (int c = thread_index() / WARP; c < STATE_MMA_WIDTH; c += STATE_MMA_THREADS / WARP) {
        const int64_t column = a.block * STATE_MMA_WIDTH + c;
        if (!(wild[c] || wild[STATE_MMA_WIDTH]) || column >= shape.e) continue;
        float s[D / WARP];
#pragma unroll
        for (int i = 0; i < D / WARP; i++) s[i] = state_mma_element(m.h, (lane + i * WARP) * Memory::VALUE + c * 2);
#pragma unroll 1
        for (int step = 0; step < n; step++) {
            const float decay = m.decay[step], v = state_mma_one(m.v, step * Memory::VALUE + c * 2);
            float u = shape.dt.data ? m.factor[step] * v : v, k[D / WARP], sum = 0;
#pragma unroll
            for (int i = 0; i < D / WARP; i++) {
                k[i] = state_mma_one(m.k, step * Memory::KEY + (lane + i * WARP) * 2);
                sum = fused(k[i], s[i], sum);
            }
            if (shape.beta.data) u = m.rate[step] * fused(-decay, group_sum<WARP>(sum), v);
            sum = 0;
#pragma unroll
            for (int i = 0; i < D / WARP; i++) {
                if (lane + i * WARP < shape.d) s[i] = fused(decay, s[i], k[i] * u);
                sum = fused(state_mma_one(m.q, step * Memory::KEY + (lane + i * WARP) * 2), s[i], sum);
            }
            sum = group_sum<WARP>(sum);
            if (lane == 0)
                state_put(p.all.y, state_at(p.all.y, a, first + step, a.head) + column,
                          shape.past ? fused(shape.past[a.head], v, sum) : shape.scale * sum);
        }
#pragma unroll
        for (int i = 0; i < D / WARP; i++) {
            uint32_t part[STATE_MMA_PARTS];
            state_mma_split_any(s[i] == s[i] ? s[i] : not_a_number(), 0.0f, part);
#pragma unroll
            for (int j = 0; j < STATE_MMA_PARTS; j++)
                *(uint16_t *)(m.h[j] + (lane + i * WARP) * Memory::VALUE + c * 2) = (uint16_t)part[j];
        }
    }
}

#endif
