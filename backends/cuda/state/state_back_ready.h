/* SPDX-License-Identifier: Apache-2.0 */
/* What a chunk's steps are to each other, of all chunks at the same time: products of gates, those of queries and keys,
 * and what the delta rule makes of them. */
#ifndef TRINE_CUDA_STATE_BACK_READY_H
#define TRINE_CUDA_STATE_BACK_READY_H

#include "state_back_params.h"
#include "state_mma_chunk.h"

struct state_back_ready_gates {
    float decays[STATE_BACK_SQUARE];
    float before[STATE_MMA_STEPS], after[STATE_MMA_STEPS], factor[STATE_MMA_STEPS], rate[STATE_MMA_STEPS];
    float decay[STATE_MMA_STEPS];
    int wild[4];
};
/* With the delta rule: keys and queries, in whose place come two matrices; dout. */
template <int D, int INPUTS> struct state_back_ready_memory : state_back_ready_gates {
    enum { KEY = STATE_MMA_ROW(D), VALUE = STATE_MMA_ROW(STATE_MMA_WIDTH) };
    struct keys {
        char k[INPUTS][STATE_MMA_STEPS * KEY], q[INPUTS][STATE_MMA_STEPS * KEY];
    };
    struct matrices {
        float m[STATE_MMA_STEPS][STATE_MMA_PITCH], inverse[STATE_MMA_STEPS][STATE_MMA_PITCH];
    };
    union {
        keys key;
        matrices matrix;
    };
    char dout[INPUTS][STATE_MMA_STEPS * VALUE];
};

/* x = -(1 + m beta)^-1 m on the diagonal, so that 1 + x beta is an inverse: each warp has a square of 16, each lane a
 * column. */
template <class Memory> DEVICE void state_back_invert_squares(Memory &m) {
    const int first = thread_index() / WARP * 16, c = thread_index() % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
        x[i] = c < i ? m.matrix.m[first + i][first + c] : 0.0f;
#pragma unroll
        for (int s = 0; s < i; s++) x[i] = fused(m.matrix.m[first + i][first + s], m.rate[first + s] * x[s], x[i]);
        x[i] = c < i ? -x[i] : 0.0f;
        if (thread_index() % WARP < 16) m.matrix.inverse[first + i][first + c] = x[i];
    }
}
/* Below it: each warp has 16 columns, each lane a column of half a square's rows. */
template <class Memory> DEVICE void state_back_invert_below(Memory &m) {
    const int first = thread_index() / WARP * 16, column = first + thread_index() % 16,
              half = thread_index() % WARP / 16 * 8;
#pragma unroll 1
    for (int row = first + 16; row < STATE_MMA_STEPS; row += 16) {
        float sum[8], all[8];
#pragma unroll
        for (int i = 0; i < 8; i++) sum[i] = m.matrix.m[row + half + i][column];
#pragma unroll 1
        for (int k = first; k < row; k++) {
            const float x = m.rate[k] * m.matrix.inverse[k][column];
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] = fused(m.matrix.m[row + half + i][k], x, sum[i]);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) m.matrix.inverse[row + half + i][column] = all[i] = sum[i];
        sync_warp();
#pragma unroll 4
        for (int k = 0; k < 16; k++) {
            const float x = m.rate[row + k] * m.matrix.inverse[row + k][column];
#pragma unroll
            for (int i = 0; i < 8; i++) all[i] = fused(m.matrix.inverse[row + half + i][row + k], x, all[i]);
        }
        sync_warp();
#pragma unroll
        for (int i = 0; i < 8; i++) m.matrix.inverse[row + half + i][column] = -all[i];
        sync_warp();
    }
}

/* A matrix of shared memory to the workspace, by `get(row, column)`. */
template <class Get> DEVICE void state_back_store(float *to, Get get) {
#pragma unroll 4
    for (int i = thread_index(); i < STATE_BACK_SQUARE / 4; i += STATE_MMA_READY_THREADS) {
        const int row = i / (STATE_MMA_STEPS / 4), column = i % (STATE_MMA_STEPS / 4) * 4;
        store_words(to + i * 4, bits_of_float(get(row, column)), bits_of_float(get(row, column + 1)),
                    bits_of_float(get(row, column + 2)), bits_of_float(get(row, column + 3)));
    }
}

/* Gates and numbers of steps, once those are there, to the workspace. */
template <class Memory> DEVICE void state_back_store_gates(const state_back_params &p, const Memory &m) {
    state_back_store(p.decays + block_index() * STATE_BACK_SQUARE, [&](int row, int column) {
        return column <= row ? m.decays[state_mma_decay(row, column)] : 0.0f;
    });
    if (thread_index() >= STATE_MMA_STEPS) return;
    const int i = thread_index();
    float *const to = p.numbers + block_index() * (STATE_BACK_NUMBERS * STATE_MMA_STEPS) + i;
    to[STATE_BACK_BEFORE * STATE_MMA_STEPS] = m.before[i];
    to[STATE_BACK_AFTER * STATE_MMA_STEPS] = m.decays[state_mma_decay(STATE_MMA_STEPS - 1, i)];
    to[STATE_BACK_FACTOR * STATE_MMA_STEPS] = m.factor[i], to[STATE_BACK_RATE * STATE_MMA_STEPS] = m.rate[i];
}

/* What the outputs of a chunk's own steps give to the gradients of what they added: weights are the thread's products
 * of keys and queries. */
template <class T, int D>
DEVICE void state_back_own(const state_back_params &p, state_back_ready_memory<D, state_mma_input<T>::PARTS> &m,
                           const state_task &a, int64_t first, int n, float (&weight)[STATE_MMA_STEPS / 8][4]) {
    enum { INPUTS = state_mma_input<T>::PARTS };
    using Memory = state_back_ready_memory<D, INPUTS>;
    const state_shape &s = p.all.shape;
    const state_mma_place place;
#pragma unroll
    for (int c = 0; c < STATE_MMA_STEPS / 8; c++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = place.row + e / 2 * 8, column = c * 8 + place.step + e % 2;
            weight[c][e] = row <= column ? s.scale * weight[c][e] * m.decays[state_mma_decay(column, row)] : 0.0f;
        }
    uint32_t parts[STATE_MMA_STEPS / 16][STATE_MMA_PARTS][4];
#pragma unroll
    for (int k = 0; k < STATE_MMA_STEPS / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float(&of)[4] = weight[2 * k + i / 2];
            uint32_t part[STATE_MMA_PARTS];
            state_mma_split(of[i % 2 * 2], of[i % 2 * 2 + 1], part);
#pragma unroll
            for (int j = 0; j < STATE_MMA_PARTS; j++) parts[k][j][i] = part[j];
        }
    state_mma_rows<T, STATE_MMA_WIDTH, STATE_MMA_READY_THREADS> rows;
    const int64_t from = state_at(p.all.dout, a, first, a.head);
    rows.load(p.all.dout, from, n, s.e, p.wide);
#pragma unroll 1
    for (int64_t block = 0; block < p.columns; block++) {
        const int64_t next = (block + 1) * STATE_MMA_WIDTH;
        sync_block(); /* nobody reads the columns before any more */
        rows.put(m.dout, [](uint32_t, int) {});
        if (block + 1 < p.columns) rows.load(p.all.dout, from + next, n, s.e - next, p.wide);
        sync_block();
        float sum[STATE_MMA_WIDTH / 8][4] = {};
#pragma unroll
        for (int k = 0; k < STATE_MMA_STEPS; k += 16) {
            if (k / 16 < place.warp) continue;
#pragma unroll
            for (int c = 0; c < STATE_MMA_WIDTH / 8; c += 2)
#pragma unroll
                for (int j = INPUTS - 1; j >= 0; j--) {
                    uint32_t y[4];
                    state_mma_right_turned(y, m.dout[j], Memory::VALUE, k, c * 8);
#pragma unroll
                    for (int i = STATE_MMA_PARTS - 1; i >= 0; i--)
                        state_mma_add(sum[c], sum[c + 1], parts[k / 16][i], y);
                }
        }
        float *const to = p.of + (block_index() * p.columns + block) * STATE_MMA_STEPS * STATE_MMA_WIDTH +
                          place.row * STATE_MMA_WIDTH + place.step;
#pragma unroll
        for (int c = 0; c < STATE_MMA_WIDTH / 8; c++)
#pragma unroll
            for (int e = 0; e < 4; e += 2)
                store_words(to + e / 2 * 8 * STATE_MMA_WIDTH + c * 8, bits_of_float(sum[c][e]),
                            bits_of_float(sum[c][e + 1]));
    }
}

/* The delta rule's, once gates are there, of keys and queries in shared memory. */
template <class T, int D>
DEVICE void state_back_rule(const state_back_params &p, state_back_ready_memory<D, state_mma_input<T>::PARTS> &m,
                            const state_task &a, int64_t first, int n) {
    const int64_t square = block_index() * STATE_BACK_SQUARE;
    const state_mma_place place;
    float score[STATE_MMA_STEPS / 8][4];
    state_mma_scores<D, true>(score, m.key.k, m.key.q);
    state_back_own<T>(p, m, a, first, n, score);
    state_mma_scores<D>(score, m.key.k, m.key.k);
    sync_block(); /* nobody reads keys any more */
#pragma unroll
    for (int c = 0; c < STATE_MMA_STEPS / 8; c++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = place.row + e / 2 * 8, column = c * 8 + place.step + e % 2;
            const float change = m.rate[row] * score[c][e];
            if (row == column && !(change >= 0 && change < STATE_MMA_MOST_CHANGE)) m.wild[0] = 1;
            m.matrix.m[row][column] = column < row ? score[c][e] * m.decays[state_mma_decay(row, column)] : 0.0f;
            m.matrix.inverse[row][column] = 0;
        }
    sync_block();
    state_back_invert_squares(m);
    sync_block();
    state_back_invert_below(m);
    sync_block();
    state_back_store(p.inverse + square, [&](int row, int column) { return m.matrix.inverse[row][column]; });
    state_back_store(p.turned + square, [&](int row, int column) { return m.matrix.inverse[column][row]; });
}

template <class T, int D, bool RULED> DEVICE void state_back_ready(const state_back_params &p) {
    enum { INPUTS = state_mma_input<T>::PARTS };
    static_assert(sizeof(state_back_ready_memory<D, INPUTS>) == STATE_BACK_READY_BYTES(D, INPUTS, true) &&
                      sizeof(state_back_ready_gates) == STATE_BACK_READY_BYTES(D, INPUTS, false),
                  "the host counts on it");
    state_back_ready_memory<D, INPUTS> &all = *(state_back_ready_memory<D, INPUTS> *)launch_memory();
    state_back_ready_gates &m = all;
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
    if constexpr (RULED) {
        bool wild = false;
        const auto see = [&](uint32_t pair, int) { wild |= state_mma_input<T>::wild_key(pair); };
        state_mma_rows<T, D, STATE_MMA_READY_THREADS> x;
        x.load(s.k, state_at(s.k, a, first, a.group), n, s.d, p.wide);
        x.put(all.key.k, see);
        x.load(s.q, state_at(s.q, a, first, a.group), n, s.d, p.wide);
        x.put(all.key.q, see);
        if (wild) m.wild[0] = 1;
    }
    state_mma_given given;
    given.load(s, a, first, n);
    given.put(m, s, a, m.wild[0]);
    sync_block();
    state_mma_decays<false>(m, m.wild[0]);
    sync_block();
    state_back_store_gates(p, m);
    if constexpr (RULED) state_back_rule<T>(p, all, a, first, n);
    if (thread_index() == 0) p.unready[block_index()] = m.wild[0];
}

#endif
