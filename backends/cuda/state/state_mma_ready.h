/* SPDX-License-Identifier: Apache-2.0 */
/* The inverses of the delta rule, of all chunks at the same time. */
#ifndef TRINE_CUDA_STATE_MMA_READY_H
#define TRINE_CUDA_STATE_MMA_READY_H

#include "state_mma_chunk.h"

/* The inverse of I + m on the diagonal: each warp has a square of 16, each lane a column. */
template <class Memory> DEVICE void state_mma_invert_squares(Memory &m) {
    const int first = thread_index() / WARP * 16, c = thread_index() % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
        x[i] = i == c ? 1.0f : 0.0f;
#pragma unroll
        for (int s = 0; s < i; s++) x[i] = fused(-m.m[first + i][first + s], x[s], x[i]);
        if (thread_index() % WARP < 16) m.inverse[first + i][first + c] = x[i];
    }
}
/* Below it: each warp has 16 columns, each lane a column of half a square's rows. */
template <class Memory> DEVICE void state_mma_invert_below(Memory &m) {
    const int first = thread_index() / WARP * 16, column = first + thread_index() % 16,
              half = thread_index() % WARP / 16 * 8;
#pragma unroll 1
    for (int row = first + 16; row < STATE_MMA_STEPS; row += 16) {
        float sum[8] = {};
#pragma unroll 1
        for (int k = first; k < row; k++) {
            const float x = m.inverse[k][column];
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] = fused(m.m[row + half + i][k], x, sum[i]);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) m.inverse[row + half + i][column] = sum[i];
        sync_warp();
#pragma unroll
        for (int i = 0; i < 8; i++) sum[i] = 0;
#pragma unroll 4
        for (int k = 0; k < 16; k++) {
            const float x = m.inverse[row + k][column];
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] = fused(-m.inverse[row + half + i][row + k], x, sum[i]);
        }
        sync_warp();
#pragma unroll
        for (int i = 0; i < 8; i++) m.inverse[row + half + i][column] = sum[i];
        sync_warp();
    }
}

template <class T, int D> DEVICE void state_mma_ready(const state_mma_params &p) {
    enum { INPUTS = state_mma_input<T>::PARTS };
    using Memory = state_mma_ready_memory<D, INPUTS>;
    static_assert(sizeof(Memory) == STATE_MMA_READY_BYTES(D, INPUTS), "the host counts on it");
    Memory &m = *(Memory *)launch_memory();
    const state_shape &s = p.all.shape;
    const int64_t at = block_index() / s.h;
    int64_t first = 0;
    state_task a = state_mma_chunk_of<STATE_MMA_READY_THREADS>(p, at, first);
    a.head = block_index() - at * s.h;
    a.group = a.head / (s.h / s.groups);
    if (a.astray || first >= a.steps) return;
    const int n = state_mma_count(a, first);
    if (thread_index() == 0) m.wild[0] = 0;
    sync_block();
    bool wild = false;
    state_mma_rows<T, D, STATE_MMA_READY_THREADS> k;
    k.load(s.k, state_at(s.k, a, first, a.group), n, s.d, p.wide);
    k.put(m.k, [&](uint32_t pair, int) { wild |= state_mma_input<T>::wild_key(pair); });
    if (wild) m.wild[0] = 1;
    state_mma_given given;
    given.load(s, a, first, n);
    given.put(m, s, a, m.wild[0]);
    sync_block();
    state_mma_decays(m, m.wild[0]);
    const state_mma_place place;
    float score[STATE_MMA_STEPS / 8][4];
    state_mma_scores<D>(score, m.k, m.k);
    sync_block();
#pragma unroll
    for (int c = 0; c < STATE_MMA_STEPS / 8; c++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = place.row + e / 2 * 8, column = c * 8 + place.step + e % 2;
            const float x = m.rate[row] * score[c][e];
            if (row == column && !(x >= 0 && x < STATE_MMA_MOST_CHANGE)) m.wild[0] = 1;
            if (column < row) m.m[row][column] = x * m.decays[state_mma_decay(row, column)];
        }
    sync_block();
    state_mma_invert_squares(m);
    sync_block();
    state_mma_invert_below(m);
    sync_block();
    float *const to = p.inverse + block_index() * (STATE_MMA_STEPS * STATE_MMA_STEPS);
    for (int i = thread_index(); i < STATE_MMA_STEPS * STATE_MMA_STEPS / 4; i += STATE_MMA_READY_THREADS) {
        const int row = i / (STATE_MMA_STEPS / 4), column = i % (STATE_MMA_STEPS / 4) * 4;
        const float(&x)[STATE_MMA_PITCH] = m.inverse[row];
        if (column / 16 <= row / 16)
            store_words(to + row * STATE_MMA_STEPS + column, bits_of_float(x[column]), bits_of_float(x[column + 1]),
                        bits_of_float(x[column + 2]), bits_of_float(x[column + 3]));
    }
    if (thread_index() == 0) p.wild[block_index()] = m.wild[0];
}

#endif
