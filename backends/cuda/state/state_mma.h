/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences of matrices by the tensor cores of sm_80 and later, in chunks of 64 steps.
 *
 * A block has 32 columns of a head's state, in f32 in its threads' registers, and takes the chunks one after the other.
 * In a chunk, with L(t, s) the product of the gates of steps s+1 .. t, A(t) that of all up to t, and S the state before
 * it,
 *
 *     o[t] = scale (A(t) S^T q[t] + sum over s <= t of L(t, s) (q[t] k[s]) u[s]),
 *     S'   = A(last) S + sum over s of L(last, s) k[s] u[s]^T,
 *
 * where u is v, times its factor, or with the delta rule U = (I + M)^-1 R, M(t, s) = beta[t] L(t, s) (k[t] k[s]) for s
 * < t, R[t] = beta[t] (v[t] - A(t) S^T k[t]). The inverses, which do not depend on states, are found before, all at the
 * same time.
 *
 * L is found row by row, from the right to the left, so that all that a step's rounding meets are the states before it:
 * never as a difference of sums of logarithms. Inputs are products' operands as they are, f16 as the sum of two bf16;
 * all else is f32, as the sum of three bf16, and so no product rounds more than f32 would.
 *
 * A chunk whose numbers could overflow on the way, and those of its columns that hold such numbers, are taken step by
 * step: `wild`.
 *
 * NOTES. Floor: at d = e = 128 the delta rule asks for 8 products of 64 x 128 x 32 by 3 and 6 parts for a chunk and 32
 * columns, 7 Mflop. */
#ifndef TRINE_CUDA_STATE_MMA_H
#define TRINE_CUDA_STATE_MMA_H

#include "state_mma_ready.h"
#include "state_mma_state.h"
#include "state_mma_sums.h"

/* The rows of q, and with the delta rule of k, times the state. */
template <int D, int INPUTS, bool RULED>
DEVICE void state_mma_read(state_mma_sums &of_q, state_mma_sums &of_k, const state_mma_memory<D, INPUTS> &m) {
    using Memory = state_mma_memory<D, INPUTS>;
    const state_mma_place place;
#pragma unroll 4
    for (int k = 0; k < D; k += 16) {
        uint32_t x[INPUTS][4], y[INPUTS][4];
#pragma unroll
        for (int i = 0; i < INPUTS; i++) {
            state_mma_left(x[i], m.q[i], Memory::KEY, place.warp * 16, k);
            if (RULED) state_mma_left(y[i], m.k[i], Memory::KEY, place.warp * 16, k);
        }
#pragma unroll
        for (int j = STATE_MMA_PARTS - 1; j >= 0; j--)
#pragma unroll
            for (int c = 0; c < STATE_MMA_OWN / 8; c += 2) {
                uint32_t z[4];
                state_mma_right_turned(z, m.h[j], Memory::VALUE, k, place.share + c * 8);
#pragma unroll
                for (int i = 0; i < INPUTS; i++) {
                    state_mma_add(of_q[c], of_q[c + 1], x[i], z);
                    if (RULED) state_mma_add(of_k[c], of_k[c + 1], y[i], z);
                }
            }
    }
}

/* What steps of the chunk add to each other's outputs: the weights are the thread's products of q and k. */
template <int PARTS, int BYTES>
DEVICE void state_mma_weigh(state_mma_sums &o, const float (&score)[STATE_MMA_STEPS / 8][4],
                            const char (&u)[PARTS][BYTES]) {
    const state_mma_place place;
#pragma unroll
    for (int k = 0; k < STATE_MMA_STEPS; k += 16) {
        if (k / 16 > place.warp) continue;
        uint32_t x[STATE_MMA_PARTS][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float(&from)[4] = score[k / 8 + i / 2];
            uint32_t part[STATE_MMA_PARTS];
            state_mma_split(from[i % 2 * 2], from[i % 2 * 2 + 1], part);
#pragma unroll
            for (int j = 0; j < STATE_MMA_PARTS; j++) x[j][i] = part[j];
        }
        state_mma_multiply(o, x, u, k);
    }
}

/* The outputs, but those of wild columns. */
template <class T, int D, int INPUTS>
DEVICE void state_mma_write(const state_mma_params &p, const state_mma_memory<D, INPUTS> &m, const state_task &a,
                            const state_mma_sums &o, int64_t first, int n, const int *wild) {
    using Memory = state_mma_memory<D, INPUTS>;
    const state_mma_place place;
    const state_shape &shape = p.all.shape;
    const int64_t right = a.block * STATE_MMA_WIDTH + place.column, columns = shape.e - right;
    const float past = shape.past ? shape.past[a.head] : 0.0f;
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
        const int row = place.row + e / 2 * 8;
        if (row >= n) continue;
        typename T::bits *const to =
            (typename T::bits *)p.all.y.data + state_at(p.all.y, a, first + row, a.head) + right;
#pragma unroll
        for (int c = 0; c < STATE_MMA_OWN / 8; c++) {
            float x[2] = { shape.scale * o[c][e], shape.scale * o[c][e + 1] };
            if (shape.past) {
                float v[2];
                state_mma_two(m.v, row * Memory::VALUE + (place.column + c * 8) * 2, v[0], v[1]);
                x[0] = fused(past, v[0], o[c][e]), x[1] = fused(past, v[1], o[c][e + 1]);
            }
            if (p.wide && c * 8 + 1 < columns && !wild) {
                *(uint32_t *)(to + c * 8) = T::pair(x[0], x[1]);
                continue;
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (c * 8 + i < columns && !(wild && (wild[place.column + c * 8 + i] || wild[STATE_MMA_WIDTH])))
                    to[c * 8 + i] = T::put(x[i]);
        }
    }
}

/* A chunk: from n steps' inputs in shared memory to their outputs and the state behind them. */
template <class T, int D, bool RULED>
DEVICE void state_mma_chunk(const state_mma_params &p, state_mma_memory<D, state_mma_input<T>::PARTS> &m,
                            const state_task &a, state_mma_state<D> &h, int64_t first, int n, int turn) {
    enum { INPUTS = state_mma_input<T>::PARTS };
    using Memory = state_mma_memory<D, INPUTS>;
    const state_shape &shape = p.all.shape;
    const state_mma_place place;
    int *const wild = m.wild[turn];
    const int64_t at = (state_mma_first_chunk(p, a) + first / STATE_MMA_STEPS) * shape.h + a.head;
    state_mma_matrix<false> inverse;
    if (RULED) inverse.load(p.inverse + at * (STATE_MMA_STEPS * STATE_MMA_STEPS));
    state_mma_decays(m, wild[STATE_MMA_WIDTH]);
    if (RULED && thread_index() == 0 && p.wild[at]) wild[STATE_MMA_WIDTH] = 1;
    if (thread_index() <= STATE_MMA_WIDTH) m.wild[turn ^ 1][thread_index()] = 0;
    float score[STATE_MMA_STEPS / 8][4];
    state_mma_sums o, u;
    state_mma_clear(o), state_mma_clear(u);
    state_mma_read<D, INPUTS, RULED>(o, u, m);
    state_mma_scores<D>(score, m.q, m.k);
    sync_block(); /* decays are there */
    state_mma_last_decays(m);
    bool any = false;
#pragma unroll 1
    for (int c = thread_index() % WARP; c <= STATE_MMA_WIDTH; c += WARP) any |= wild[c] != 0;
    any = any_of_warp(any);
#pragma unroll
    for (int c = 0; c < STATE_MMA_STEPS / 8; c++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = place.row + e / 2 * 8, column = c * 8 + place.step + e % 2;
            score[c][e] = column <= row ? score[c][e] * m.decays[state_mma_decay(row, column)] : 0.0f;
        }
#pragma unroll
    for (int c = 0; c < STATE_MMA_OWN / 8; c++)
#pragma unroll
        for (int e = 0; e < 4; e++) o[c][e] *= m.before[place.row + e / 2 * 8];
    if (RULED) {
        state_mma_each_pair([&](int c, int e, int row, int column) {
            float x, y;
            state_mma_two(m.v, row * Memory::VALUE + column * 2, x, y);
            state_mma_put_pair(m.u, row, column, m.rate[row] * fused(-m.before[row], u[c][e], x),
                               m.rate[row] * fused(-m.before[row], u[c][e + 1], y));
        });
        state_mma_clear(u);
        sync_block();
        inverse.multiply(u, m.u);
    }
    sync_block(); /* nobody reads decays or differences any more */
    state_mma_each_pair([&](int c, int e, int row, int column) {
        float x = u[c][e], y = u[c][e + 1];
        if (RULED)
            state_mma_put_pair(m.u, row, column, x, y);
        else
            state_mma_two(m.v, row * Memory::VALUE + column * 2, x, y);
        state_mma_put_pair(m.added, row, column, m.after[row] * x, m.after[row] * y);
    });
    sync_block();
    if constexpr (RULED)
        state_mma_weigh(o, score, m.u);
    else
        state_mma_weigh(o, score, m.v);
    state_mma_write<T>(p, m, a, o, first, n, any ? wild : nullptr);
    if (any) {
        state_mma_alone(p, m, a, first, n, wild);
        sync_block();
    }
    const float decay = m.before[STATE_MMA_STEPS - 1];
    h.each([&](float &x, int, int) { x *= decay; });
    state_mma_gain(h, m.k, m.added);
    if (any) {
        const int row = h.row(0, 0), column = h.column(0, 0);
        h.each([&](float &x, int r, int c) {
            if (wild[column + c] || wild[STATE_MMA_WIDTH])
                x = state_mma_element(m.h, (row + r) * Memory::VALUE + (column + c) * 2);
        });
    }
}

/* The inputs of the next chunk, on their way while this one is computed. */
template <class T, int D> struct state_mma_ahead {
    state_mma_rows<T, D> k, q;
    state_mma_rows<T, STATE_MMA_WIDTH> v;
    state_mma_given given;

    DEVICE void load(const state_mma_params &p, const state_task &a, int64_t first) {
        const state_shape &s = p.all.shape;
        const int n = state_mma_count(a, first);
        const int64_t column = a.block * STATE_MMA_WIDTH;
        k.load(s.k, state_at(s.k, a, first, a.group), n, s.d, p.wide);
        q.load(s.q, state_at(s.q, a, first, a.group), n, s.d, p.wide);
        v.load(s.v, state_at(s.v, a, first, a.head) + column, n, s.e - column, p.wide);
        given.load(s, a, first, n);
    }
    template <class Memory> DEVICE void put(Memory &m, const state_shape &s, const state_task &a, int *wild) const {
        bool all = false;
        const auto key = [&](uint32_t pair, int) { all |= state_mma_input<T>::wild_key(pair); };
        k.put(m.k, key), q.put(m.q, key);
        if (all) wild[STATE_MMA_WIDTH] = 1;
        v.put(m.v, [&](uint32_t pair, int at) {
            if (!state_mma_input<T>::wild_value(pair)) return;
            if (state_mma_input<T>::wild_value(pair & 0xffffu)) wild[at] = 1;
            if (state_mma_input<T>::wild_value(pair >> 16)) wild[at + 1] = 1;
        });
        given.put(m, s, a, wild[STATE_MMA_WIDTH]);
    }
};

template <class T, int D, bool RULED> DEVICE void state_mma(const state_mma_params &p) {
    enum { INPUTS = state_mma_input<T>::PARTS };
    using Memory = state_mma_memory<D, INPUTS>;
    static_assert(sizeof(Memory) == STATE_MMA_BYTES(D, INPUTS), "the host counts on it");
    const state_shape &s = p.all.shape;
    const state_task a = state_task_of<STATE_MMA_THREADS>(s);
    if (a.room) {
        state_clear<STATE_MMA_THREADS, STATE_MMA_WIDTH>(s, a, p.all.y);
        return;
    }
    Memory &m = *(Memory *)launch_memory();
    state_mma_state<D> h;
    h.load(s.s0, s, a);
    for (int i = thread_index(); i < 2 * (STATE_MMA_WIDTH + 1); i += STATE_MMA_THREADS)
        m.wild[i / (STATE_MMA_WIDTH + 1)][i % (STATE_MMA_WIDTH + 1)] = 0;
    state_mma_ahead<T, D> ahead;
    if (RULED) ahead.load(p, a, 0);
    int turn = 0;
#pragma unroll 1
    for (int64_t first = 0; first < a.steps; first += STATE_MMA_STEPS, turn ^= 1) {
        const int n = state_mma_count(a, first);
        sync_block(); /* nobody reads the chunk before any more */
        h.put(m.h, m.wild[turn]);
        if (!RULED) ahead.load(p, a, first);
        ahead.put(m, s, a, m.wild[turn]);
        if (RULED && first + STATE_MMA_STEPS < a.steps) ahead.load(p, a, first + STATE_MMA_STEPS);
        sync_block();
        state_mma_chunk<T, D, RULED>(p, m, a, h, first, n, turn);
    }
    h.save(p.all.last, s, a);
}

#endif
