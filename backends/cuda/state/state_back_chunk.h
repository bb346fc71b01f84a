/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of queries, keys and numbers of steps, of all chunks at the same time.
 *
 * Of a chunk of a head, with S the state before it, E the gradient of that after it, and of two of its steps W(t, s) =
 * dout[t] u[s], Z(t, s) = dv[t] u[s], each with L(t, s),
 *
 *     dv[t] = L(last, t) E^T k[t] + scale sum over s >= t of L(s, t) (q[s] k[t]) dout[s], with the delta rule known,
 *     dq[t] = scale (A(t) S dout[t] + sum over s <= t of W(t, s) k[s]),
 *     dk[t] = L(last, t) E u[t] + scale sum over s >= t of W(s, t) q[s]
 *             - A(t) S dv[t] - sum over s of Z(t, s) k[s] + Z(s, t) k[s],
 *
 * what has dv with the delta rule alone. The gate of step t has all that goes past it, from s < t or S to r >= t or E:
 *
 *     dg[t] = A(last) E S + sum over r >= t of A(r) (scale q[r] S dout[r] - k[r] S dv[r])
 *             + sum over s < t of L(last, s) k[s] E u[s]
 *             + sum over both of scale W(r, s) (q[r] k[s]) - Z(r, s) (k[r] k[s]),
 *
 * each term with the gates that it went past, and none taken back: a difference of sums over steps would have their
 * rounding where what is left is small. */
#ifndef TRINE_CUDA_STATE_BACK_CHUNK_H
#define TRINE_CUDA_STATE_BACK_CHUNK_H

#include "state_back_columns.h"
#include "state_back_sums.h"

/* What comes past each step's gate, to the workspace: rows of m.past are steps r or E, its columns steps s, and what
 * each row has of S is in m.dots[0], less what is in m.dots[1]. Wants all threads together. */
template <class Memory>
DEVICE bool state_back_gates(Memory &m, float *sums, int64_t step, int n, float both, bool ruled) {
    const int part = thread_index() % 8;
    for (int row = thread_index() / 8; row < STATE_MMA_STEPS + 8; row += STATE_MMA_STEPS) {
        float x[8], all = 0, start = 0;
        if (row <= STATE_MMA_STEPS) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                x[i] = part * 8 + i < row ? m.past[row][part * 8 + i] : 0.0f;
                all += x[i];
            }
        }
#pragma unroll
        for (int mask = 1; mask < 8; mask *= 2) {
            const float other = shuffle_xor(all, mask);
            start += part & mask ? other : 0.0f;
            all += other;
        }
        if (row > STATE_MMA_STEPS) continue;
        float own = both;
        if (row < STATE_MMA_STEPS) {
            own = (m.dots[0][0][row] + m.dots[0][1][row]) + (m.dots[0][2][row] + m.dots[0][3][row]);
            if (ruled) own -= (m.dots[1][0][row] + m.dots[1][1][row]) + (m.dots[1][2][row] + m.dots[1][3][row]);
        }
        start += own;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            m.past[row][part * 8 + i] = start;
            start += x[i];
        }
    }
    sync_block();
    const int t = thread_index() / 8;
    float sum = part == 0 ? m.past[STATE_MMA_STEPS][t] : 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i * 8 + part >= t) sum += m.past[i * 8 + part][t];
#pragma unroll
    for (int mask = 1; mask < 8; mask *= 2) sum += shuffle_xor(sum, mask);
    if (part == 0 && t < n) sums[t * step] = sum;
    return !(magnitude(sum) < infinity());
}

/* Without the delta rule, products of queries and keys with the gates between. */
template <int D, int INPUTS>
DEVICE void state_back_weights(state_back_chunk_memory<D, INPUTS, false> &m, const float *decays, float scale) {
    using Memory = state_back_chunk_memory<D, INPUTS, false>;
    const state_mma_place place;
    float by_q[2][4] = {};
    state_back_scores<D>(by_q, m.q, m.k);
#pragma unroll
    for (int c = 0; c < 2; c++)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            const packed<float, 2> decay = *(const packed<float, 2> *)(decays + e / 2 * 8 * STATE_MMA_STEPS + c * 8);
            uint32_t part[STATE_MMA_PARTS];
            state_mma_split(scale * by_q[c][e] * decay.v[0], scale * by_q[c][e + 1] * decay.v[1], part);
#pragma unroll
            for (int j = 0; j < STATE_MMA_PARTS; j++)
                *(uint32_t *)(m.row.weights[j] + (place.row + e / 2 * 8) * Memory::STEP + (place.column + c * 8) * 2) =
                    part[j];
        }
}

/* What a warp sums up of a chunk: gradients of queries and of keys, S dv; 16 by 16 of W and Z. */
template <int D> struct state_back_all {
    state_back_sums<D> dq, dk, of_s;
    float w[2][4], z[2][4];
};

/* 32 columns to all of it. */
template <int D, int INPUTS, bool RULED>
DEVICE void state_back_multiply(const state_back_chunk_memory<D, INPUTS, RULED> &m, state_back_all<D> &x) {
    enum { ADDED = RULED ? (int)STATE_MMA_PARTS : (int)INPUTS };
    using Memory = state_back_chunk_memory<D, INPUTS, RULED>;
    const state_mma_place place;
#pragma unroll
    for (int k = 0; k < STATE_MMA_WIDTH; k += 16) {
        uint32_t dout[INPUTS][4], u[ADDED][4], dv[STATE_MMA_PARTS][4];
#pragma unroll
        for (int i = 0; i < INPUTS; i++) state_mma_left(dout[i], m.row.dout[i], Memory::VALUE, place.warp * 16, k);
#pragma unroll
        for (int i = 0; i < ADDED; i++) state_mma_left(u[i], m.row.u[i], Memory::VALUE, place.warp * 16, k);
        if constexpr (RULED) {
#pragma unroll
            for (int i = 0; i < STATE_MMA_PARTS; i++)
                state_mma_left(dv[i], m.row.dv[i], Memory::VALUE, place.warp * 16, k);
        }
#pragma unroll
        for (int c = 0; c < state_back_sums<D>::TILES; c += 2)
#pragma unroll
            for (int j = STATE_MMA_PARTS - 1; j >= 0; j--) {
                const int column = state_back_sums<D>::column(c, 0) - thread_index() % 4 * 2;
                uint32_t y[4];
                state_mma_right(y, m.column.s[j], Memory::VALUE, k, column);
#pragma unroll
                for (int i = INPUTS - 1; i >= 0; i--) state_mma_add(x.dq.x[c], x.dq.x[c + 1], dout[i], y);
                if constexpr (RULED) {
#pragma unroll
                    for (int i = STATE_MMA_PARTS - 1 - j; i >= 0; i--)
                        state_mma_add(x.of_s.x[c], x.of_s.x[c + 1], dv[i], y);
                }
                state_mma_right(y, m.column.g[j], Memory::VALUE, k, column);
#pragma unroll
                for (int i = ADDED - 1; i >= 0; i--)
                    if (state_back_counts<ADDED, STATE_MMA_PARTS>(i, j))
                        state_mma_add(x.dk.x[c], x.dk.x[c + 1], u[i], y);
            }
        if (place.share > place.warp * 16) continue; /* above the diagonal */
#pragma unroll
        for (int j = ADDED - 1; j >= 0; j--) {
            uint32_t y[4];
            state_mma_right(y, m.row.u[j], Memory::VALUE, k, place.share);
#pragma unroll
            for (int i = INPUTS - 1; i >= 0; i--) state_mma_add(x.w[0], x.w[1], dout[i], y);
            if constexpr (RULED) {
#pragma unroll
                for (int i = STATE_MMA_PARTS - 1 - j; i >= 0; i--) state_mma_add(x.z[0], x.z[1], dv[i], y);
            }
        }
    }
}

/* Gates meet what states gave; and what threads have of rows and of all, to shared memory. */
template <int D, int INPUTS, bool RULED>
DEVICE void state_back_meet(state_back_chunk_memory<D, INPUTS, RULED> &m, state_back_all<D> &x,
                            state_back_totals &total, float scale) {
    const state_mma_place place;
    const float before[2] = { m.number[STATE_BACK_BEFORE][place.row], m.number[STATE_BACK_BEFORE][place.row + 8] };
    const int share = thread_index() / (4 * WARP);
    {
        const float(&factor)[STATE_MMA_STEPS] = m.number[STATE_BACK_FACTOR],
              (&after)[STATE_MMA_STEPS] = m.number[STATE_BACK_AFTER];
        x.dq.scale(scale * before[0], scale * before[1]);
        x.dk.scale(after[place.row] * factor[place.row], after[place.row + 8] * factor[place.row + 8]);
        x.dq.dots(m.dots[0][share], m.q);
        x.dk.dots(m.dots[2][share], m.k);
        if (RULED) {
            x.of_s.scale(before[0], before[1]);
            x.of_s.dots(m.dots[1][share], m.k);
#pragma unroll
            for (int c = 0; c < state_back_sums<D>::TILES; c++)
#pragma unroll
                for (int e = 0; e < 4; e++) x.dk.x[c][e] -= x.of_s.x[c][e];
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int mask = 1; mask < (RULED ? 8 : 4); mask *= 2) {
            total.one[i] += shuffle_xor(total.one[i], mask);
            total.two[i] += shuffle_xor(total.two[i], mask);
        }
    total.both = group_sum<WARP>(total.both);
    if (RULED) {
        if (thread_index() % 8 < 4)
            m.sum[0][thread_index() % 8][thread_index() / 8] = thread_index() % 8 ? 0.0f : total.one[0];
        if (thread_index() % 8 < 4) m.sum[1][thread_index() % 8][thread_index() / 8] = 0;
    } else if (thread_index() % 4 == 0) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            m.sum[0][share][place.row + i * 8] = total.one[i];
            m.sum[1][share][place.row + i * 8] = total.two[i];
        }
    }
    if (thread_index() % WARP == 0) m.all[thread_index() / WARP] = total.both;
}

/* Of two steps each, up to the diagonal: what their rows give to gradients of queries and keys, and what goes past
 * gates between them. `decays` are the thread's products of gates. */
template <int D, int INPUTS, bool RULED>
DEVICE void state_back_pairs(state_back_chunk_memory<D, INPUTS, RULED> &m, const state_back_all<D> &x,
                             const float *decays, float scale) {
    using Memory = state_back_chunk_memory<D, INPUTS, RULED>;
    const state_mma_place place;
    float by_q[2][4] = {}, by_k[2][4] = {};
    state_back_scores<D>(by_q, m.q, m.k);
    if (RULED) state_back_scores<D>(by_k, m.k, m.k);
#pragma unroll
    for (int c = 0; c < 2; c++)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            const int row = place.row + e / 2 * 8, column = place.column + c * 8;
            const packed<float, 2> decay = *(const packed<float, 2> *)(decays + e / 2 * 8 * STATE_MMA_STEPS + c * 8);
            float to_q[2], to_k[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                to_q[i] = to_k[i] = 0;
                if (column + i > row) continue;
                to_q[i] = scale * (m.number[STATE_BACK_FACTOR][column + i] * decay.v[i]) * x.w[c][e + i];
                if (column + i == row) continue;
                float past = to_q[i] * by_q[c][e + i];
                if (RULED) {
                    to_k[i] = -(decay.v[i] * x.z[c][e + i]);
                    past = fused(to_k[i], by_k[c][e + i], past);
                }
                m.past[row][column + i] = past;
            }
            uint32_t part[STATE_MMA_PARTS];
            state_mma_split(to_q[0], to_q[1], part);
#pragma unroll
            for (int j = 0; j < STATE_MMA_PARTS; j++)
                *(uint32_t *)(m.step.w[j] + row * Memory::STEP + column * 2) = part[j];
            if (!RULED) continue;
            state_mma_split(to_k[0], to_k[1], part);
        /* on both sides of the diagonal, on which it is 0 */
#pragma unroll
            for (int j = 0; j < STATE_MMA_PARTS; j++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    if (column + i > row) continue;
                    const uint16_t bits = (uint16_t)(part[j] >> i * 16);
                    *(uint16_t *)(m.step.z[j] + row * Memory::STEP + (column + i) * 2) = bits;
                    *(uint16_t *)(m.step.z[j] + (column + i) * Memory::STEP + row * 2) = bits;
                }
        }
}

/* And what these give. */
template <int D, int INPUTS, bool RULED>
DEVICE void state_back_steps(const state_back_chunk_memory<D, INPUTS, RULED> &m, state_back_all<D> &x) {
    using Memory = state_back_chunk_memory<D, INPUTS, RULED>;
    const state_mma_place place;
#pragma unroll 1
    for (int k = 0; k < STATE_MMA_STEPS; k += 16) {
        uint32_t y[STATE_MMA_PARTS][4];
        if (k <= place.warp * 16) {
#pragma unroll
            for (int i = 0; i < STATE_MMA_PARTS; i++)
                state_mma_left(y[i], m.step.w[i], Memory::STEP, place.warp * 16, k);
            x.dq.add(y, m.k, k);
        }
        if (k >= place.warp * 16) {
#pragma unroll
            for (int i = 0; i < STATE_MMA_PARTS; i++)
                state_mma_left_turned(y[i], m.step.w[i], Memory::STEP, place.warp * 16, k);
            x.dk.add(y, m.q, k);
        }
        if (RULED) {
#pragma unroll
            for (int i = 0; i < STATE_MMA_PARTS; i++)
                state_mma_left(y[i], m.step.z[i], Memory::STEP, place.warp * 16, k);
            x.dk.add(y, m.k, k);
        }
    }
}

template <class T, int D, bool RULED> DEVICE void state_back_chunk(const state_back_params &p) {
    enum { INPUTS = state_mma_input<T>::PARTS };
    using Memory = state_back_chunk_memory<D, INPUTS, RULED>;
    static_assert(sizeof(Memory) == STATE_BACK_CHUNK_BYTES(D, INPUTS, RULED), "the host counts on it");
    Memory &m = *(Memory *)launch_memory();
    const state_shape &s = p.all.shape;
    const int64_t at = block_index() / s.h;
    int64_t first = 0;
    state_task a = state_mma_chunk_of<STATE_BACK_CHUNK_THREADS>(p, at, first);
    a.head = block_index() - at * s.h;
    a.group = a.head / (s.h / s.groups);
    if (a.astray || first >= a.steps) return;
    const int n = state_mma_count(a, first);
    const state_mma_place place;
    const bool below = place.share <= place.warp * 16; /* of the diagonal, or on it */
    state_back_totals total = {};
    state_back_ahead_columns<T, D, RULED> ahead;
    ahead.staged = p.staged ? (packed<float, 4> *)(launch_memory() + sizeof(Memory)) + thread_index() : nullptr;
    ahead.load(p, a, first, n, 0);
    {
        state_mma_rows<T, D, STATE_BACK_CHUNK_THREADS> q, k;
        q.load(s.q, state_at(s.q, a, first, a.group), n, s.d, p.wide);
        k.load(s.k, state_at(s.k, a, first, a.group), n, s.d, p.wide);
        if (thread_index() < STATE_BACK_NUMBERS * STATE_MMA_STEPS)
            m.number[thread_index() / STATE_MMA_STEPS][thread_index() % STATE_MMA_STEPS] =
                p.numbers[block_index() * (STATE_BACK_NUMBERS * STATE_MMA_STEPS) + thread_index()];
        const auto see = [&](uint32_t pair, int) { total.bad |= state_mma_input<T>::wild_key(pair); };
        q.put(m.q, see), k.put(m.k, see);
        sync_block();
    }
    const float *const decays =
        p.decays + block_index() * STATE_BACK_SQUARE + place.row * STATE_MMA_STEPS + place.column;
    if constexpr (!RULED) {
        if (below) state_back_weights(m, decays, s.scale);
    }
    state_back_all<D> x = {};
#pragma unroll 1
    for (int64_t block = 0; block < p.columns; block++) {
        state_back_fetch<T, D, RULED>(p, m, ahead, a, first, n, block, total);
        state_back_multiply(m, x);
        if constexpr (!RULED) state_back_value<T, D>(p, m, a, first, n, block, total);
    }
    state_back_meet(m, x, total, s.scale);
    sync_block(); /* nobody reads columns any more */
    if (below) state_back_pairs(m, x, decays, s.scale);
    if (thread_index() < STATE_MMA_STEPS) {
        const int i = thread_index();
        m.past[STATE_MMA_STEPS][i] = (m.dots[2][0][i] + m.dots[2][1][i]) + (m.dots[2][2][i] + m.dots[2][3][i]);
    }
    sync_block();
    state_back_steps(m, x);
    const int64_t step = s.h * p.all.slots * STATE_SUMS;
    float *const sums = state_scalars(p.all, a, first);
    float both = 0;
#pragma unroll
    for (int i = 0; i < STATE_BACK_CHUNK_THREADS / WARP; i++) both += m.all[i];
    both *= m.number[STATE_BACK_BEFORE][STATE_MMA_STEPS - 1];
    total.bad |= state_back_gates(m, sums, step, n, both, RULED);
    if (thread_index() < n) {
        const int i = thread_index();
        const float one = (m.sum[0][0][i] + m.sum[0][1][i]) + (m.sum[0][2][i] + m.sum[0][3][i]),
                    two = (m.sum[1][0][i] + m.sum[1][1][i]) + (m.sum[1][2][i] + m.sum[1][3][i]);
        total.bad |= !(magnitude(one) < infinity()) || !(magnitude(two) < infinity());
        sums[thread_index() * step + 1] = one, sums[thread_index() * step + 2] = two;
    }
#pragma unroll
    for (int c = 0; c < state_back_sums<D>::TILES; c++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            total.bad |= !(magnitude(x.dq.x[c][e]) < infinity()) || !(magnitude(x.dk.x[c][e]) < infinity());
    if (state_back_direct(s)) {
        x.dq.template write<T>(p, p.all.dq, a, first, n), x.dk.template write<T>(p, p.all.dk, a, first, n);
    } else {
        x.dq.write(state_part(p.all, a, first), s, p.all.slots, n);
        x.dk.write(state_part(p.all, a, first) + s.d, s, p.all.slots, n);
    }
    const bool bad = sync_block_any(total.bad);
    if (thread_index() == 0) p.wild[block_index()] = bad || p.unready[block_index()];
}

/* Heads that have a wild chunk, step by step, each by a block. */
template <int R> DEVICE void state_back_alone(const state_back_params &p) {
    SHARED state_back_memory<R> m;
    const state_shape &s = p.all.shape;
    const int64_t each = p.longest + p.all.chunk;
#pragma unroll 1
    for (int64_t head = block_index(); head < s.count * s.h; head += block_count()) {
        state_task a = state_task_of<STATE_BACK_THREADS>(s, head * s.blocks);
        const int64_t chunks = (a.steps + STATE_MMA_STEPS - 1) / STATE_MMA_STEPS;
        const int32_t *const wild = p.wild + state_mma_first_chunk(p, a) * s.h + a.head;
        bool yes = false;
        for (int64_t i = thread_index(); i < chunks; i += STATE_BACK_THREADS) yes |= wild[i * s.h] != 0;
        if (!sync_block_any(yes)) continue;
#pragma unroll 1
        for (a.block = 0; a.block < s.blocks; a.block++)
            state_backward_columns(m, p.all, a, block_index() * each, block_index() * each + p.longest);
        if (!state_back_direct(s)) continue;
        sync_block(); /* the parts are there */
        a.block = 0;
        for (int64_t i = thread_index(); i < a.steps * 2 * s.d; i += STATE_BACK_THREADS) {
            const int64_t step = i / (2 * s.d), j = i % (2 * s.d);
            const state_rows &to = j < s.d ? p.all.dq : p.all.dk;
            state_put(to, state_at(to, a, step, a.group) + j % s.d, state_part(p.all, a, step)[j]);
        }
    }
}

#endif
