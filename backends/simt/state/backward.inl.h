/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of recurrences of matrices on devices: a block has 64 columns of a head's state and of its gradient. It
 * goes over all steps and keeps the states before each chunk of them; then, from the last chunk to the first, over the
 * chunk's steps, whose states it keeps, and back. What sums over columns or heads is left to other launches. */
#ifndef TRINE_SIMT_STATE_BACKWARD_INL_H
#define TRINE_SIMT_STATE_BACKWARD_INL_H

#include "state.inl.h"

enum { STATE_WARPS = STATE_BACK_THREADS / WARP };

template <int R> struct state_back_memory {
    state_stage<STATE_BACK_STEPS, R * STATE_LANES, STATE_BACK_WIDTH> stage;
    float dout[STATE_BACK_STEPS][STATE_BACK_WIDTH];
    float sums[STATE_WARPS][2][R * STATE_LANES], scalars[STATE_WARPS][STATE_SUMS];
};

/* A thread's part of the states that a block keeps, row by row, those of its threads side by side. */
template <int R> DEVICE packed<float, STATE_COLUMNS> *state_kept(float *memory, int64_t number) {
    return (packed<float, STATE_COLUMNS> *)memory + number * R * STATE_BACK_THREADS + thread_index();
}
template <int R> DEVICE void state_keep(const state_tile<R> &s, packed<float, STATE_COLUMNS> *to) {
#pragma unroll
    for (int r = 0; r < R; r++) to[r * STATE_BACK_THREADS] = { { s.x[r][0], s.x[r][1], s.x[r][2], s.x[r][3] } };
}
template <int R> DEVICE void state_recall(state_tile<R> &s, const packed<float, STATE_COLUMNS> *from) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        const packed<float, STATE_COLUMNS> row = from[r * STATE_BACK_THREADS];
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++) s.x[r][c] = row.v[c];
    }
}

/* The number of a head's block of columns, and where its kept states begin. */
DEVICE int64_t state_number(const state_shape &s, const state_task &a) { return a.head * s.blocks + a.block; }
DEVICE int64_t state_first_kept(const state_backward_params &p, const state_task &a) {
    const int64_t before = p.shape.cu ? a.first / p.chunk + a.sequence : a.sequence * (p.shape.t / p.chunk + 1);
    return state_number(p.shape, a) * p.chunks + before;
}
/* A row's part of what is added up over heads and blocks of columns. A head that has one slot for all blocks takes them
 * one after the other. */
DEVICE int64_t state_slot(const state_backward_params &p, const state_task &a) {
    return a.head * p.slots + (p.slots < p.shape.blocks ? 0 : a.block);
}
DEVICE float *state_part(const state_backward_params &p, const state_task &a, int64_t step) {
    const int64_t row = a.batch * p.shape.t + a.first + step;
    return p.parts + (row * p.shape.h * p.slots + state_slot(p, a)) * 2 * p.shape.d;
}
DEVICE float *state_scalars(const state_backward_params &p, const state_task &a, int64_t step) {
    const int64_t row = a.batch * p.shape.t + a.first + step;
    return p.sums + (row * p.shape.h * p.slots + state_slot(p, a)) * STATE_SUMS;
}

/* Steps first .. last-1 forwards; the state before each is kept from number `kept` on, one for `every` steps. */
template <int R>
DEVICE void state_steps(state_back_memory<R> &m, const state_backward_params &p, const state_task &a, state_tile<R> &s,
                        int64_t begin, int64_t end, float *memory, int64_t kept, int64_t every) {
    const state_place place = state_place_of();
    for (int64_t first = begin; first < end; first += STATE_BACK_STEPS) {
        const int n = end - first < STATE_BACK_STEPS ? (int)(end - first) : STATE_BACK_STEPS;
        sync_block();
        state_fetch<STATE_BACK_THREADS>(m.stage, p.shape, a, first, n, false);
        sync_block();
        for (int i = 0; i < n; i++) {
            const int64_t step = first + i - begin;
            if (step % every == 0) state_keep(s, state_kept<R>(memory, kept + step / every));
            float w[STATE_COLUMNS], u[STATE_COLUMNS];
            state_correction(p.shape, s, m.stage.step[i], m.stage.k[i], m.stage.v[i] + place.column, place.lane, w, u);
            state_advance(s, m.stage.step[i], m.stage.k[i], u, place.lane);
        }
    }
}

/* A step back: of g, the gradient of the state after it, makes that of the state before, `s`; the sums over the warp's
 * columns go to shared memory. */
template <int R>
DEVICE void state_retreat(state_back_memory<R> &m, const state_backward_params &p, const state_task &a,
                          state_tile<R> &s, state_tile<R> &g, int i, int64_t step) {
    const state_shape &shape = p.shape;
    const state_place place = state_place_of();
    const int lane = place.lane, warp = thread_index() / WARP;
    const state_step x = m.stage.step[i];
    const float *const k = m.stage.k[i], *const q = m.stage.q[i], *const v = m.stage.v[i] + place.column;
    float w[STATE_COLUMNS], u[STATE_COLUMNS], of_o[STATE_COLUMNS], du[STATE_COLUMNS] = {}, dv[STATE_COLUMNS];
    float dq[R], dk[R], sums[STATE_SUMS] = {};
    state_correction(shape, s, x, k, v, lane, w, u);
#pragma unroll
    for (int c = 0; c < STATE_COLUMNS; c++) of_o[c] = shape.scale * m.dout[i][place.column + c];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int row = r * STATE_LANES + lane;
        dq[r] = 0;
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++) {
            g.x[r][c] = fused(q[row], of_o[c], g.x[r][c]);
            du[c] = fused(k[row], g.x[r][c], du[c]);
            s.x[r][c] *= x.decay;
            dq[r] = fused(fused(k[row], u[c], s.x[r][c]), of_o[c], dq[r]);
        }
    }
    state_sum_all(du, lane);
    const bool delta = shape.beta.data != nullptr;
#pragma unroll
    for (int c = 0; c < STATE_COLUMNS; c++) {
        dv[c] = delta ? x.rate * du[c] : du[c];
        if (lane == 0) sums[1] = fused(du[c], delta ? w[c] : v[c], sums[1]);
        if (lane == 0) sums[2] = fused(of_o[c], v[c], sums[2]);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int row = r * STATE_LANES + lane;
        dk[r] = 0;
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++) {
            dk[r] = fused(g.x[r][c], u[c], dk[r]);
            if (delta) {
                dk[r] = fused(-s.x[r][c], dv[c], dk[r]);
                g.x[r][c] = fused(-k[row], dv[c], g.x[r][c]);
            }
            sums[0] = fused(g.x[r][c], s.x[r][c], sums[0]);
            g.x[r][c] *= x.decay;
        }
#pragma unroll
        for (int mask = STATE_LANES; mask < WARP; mask *= 2) {
            dq[r] += shuffle_xor(dq[r], mask);
            dk[r] += shuffle_xor(dk[r], mask);
        }
        if (thread_index() % WARP < STATE_LANES) m.sums[warp][0][row] = dq[r], m.sums[warp][1][row] = dk[r];
    }
#pragma unroll
    for (int j = 0; j < STATE_SUMS; j++) {
        sums[j] = group_sum<WARP>(sums[j]);
        if (thread_index() % WARP == 0) m.scalars[warp][j] = sums[j];
    }
    const int mine = lane / 4;
    const int64_t column = a.block * STATE_BACK_WIDTH + place.column + mine;
    if (lane % 4 == 0 && column < shape.e) {
        const float of_u = mine == 0 ? dv[0] : mine == 1 ? dv[1] : mine == 2 ? dv[2] : dv[3];
        float y = shape.dt.data ? x.factor * of_u : of_u;
        if (shape.past) y = fused(shape.past[a.head], m.dout[i][place.column + mine], y);
        state_put(p.dv, state_at(p.dv, a, step, a.head) + column, y);
    }
}

/* The warps' sums of a step, to the workspace. */
template <int R>
DEVICE void state_add_warps(state_back_memory<R> &m, const state_backward_params &p, const state_task &a,
                            int64_t step) {
    sync_block();
    float *const part = state_part(p, a, step), *const scalars = state_scalars(p, a, step);
    const bool more = a.block > 0 && p.slots < p.shape.blocks;
    for (int j = thread_index(); j < 2 * p.shape.d; j += STATE_BACK_THREADS) {
        const int which = j >= p.shape.d, row = which ? j - (int)p.shape.d : j;
        float sum = more ? part[j] : 0.0f;
        for (int i = 0; i < STATE_WARPS; i++) sum += m.sums[i][which][row];
        part[j] = sum;
    }
    if (thread_index() < STATE_SUMS) {
        float sum = more ? scalars[thread_index()] : 0.0f;
        for (int i = 0; i < STATE_WARPS; i++) sum += m.scalars[i][thread_index()];
        scalars[thread_index()] = sum;
    }
    sync_block();
}

/* Steps begin .. end-1 from the last to the first, whose states are kept. */
template <int R>
DEVICE void state_steps_back(state_back_memory<R> &m, const state_backward_params &p, const state_task &a,
                             state_tile<R> &g, int64_t begin, int64_t end, int64_t kept) {
    const int64_t chunks = (end - begin + STATE_BACK_STEPS - 1) / STATE_BACK_STEPS;
    for (int64_t number = chunks - 1; number >= 0; number--) {
        const int64_t first = begin + number * STATE_BACK_STEPS;
        const int n = end - first < STATE_BACK_STEPS ? (int)(end - first) : STATE_BACK_STEPS;
        sync_block();
        state_fetch<STATE_BACK_THREADS>(m.stage, p.shape, a, first, n, true);
        for (int i = thread_index(); i < n * STATE_BACK_WIDTH; i += STATE_BACK_THREADS) {
            const int step = i / STATE_BACK_WIDTH, j = i % STATE_BACK_WIDTH;
            const int64_t column = a.block * STATE_BACK_WIDTH + j;
            m.dout[step][j] =
                column < p.shape.e ? state_get(p.dout, state_at(p.dout, a, first + step, a.head) + column) : 0.0f;
        }
        sync_block();
        for (int i = n - 1; i >= 0; i--) {
            state_tile<R> s;
            state_recall(s, state_kept<R>(p.states, kept + first + i - begin));
            state_retreat(m, p, a, s, g, i, first + i);
            state_add_warps(m, p, a, first + i);
        }
    }
}

/* Behind the last sequence gradients are 0, or NaN if offsets are astray. */
DEVICE void state_clear_room(const state_backward_params &p, const state_task &a) {
    const float value = a.astray ? not_a_number() : 0.0f;
    state_clear<STATE_BACK_THREADS, STATE_BACK_WIDTH>(p.shape, a, p.dv);
    for (int64_t step = 0; step < a.steps; step++) {
        float *const part = state_part(p, a, step), *const scalars = state_scalars(p, a, step);
        for (int j = thread_index(); j < 2 * p.shape.d; j += STATE_BACK_THREADS) part[j] = value;
        if (thread_index() < STATE_SUMS) scalars[thread_index()] = value;
    }
}

/* A block of columns of a head; where it keeps states. */
template <int R>
DEVICE void state_backward_columns(state_back_memory<R> &m, const state_backward_params &p, const state_task &a,
                                   int64_t kept, int64_t states) {
    const state_shape &shape = p.shape;
    const state_place place = state_place_of();
    const int64_t column = a.block * STATE_BACK_WIDTH + place.column, chunks = (a.steps + p.chunk - 1) / p.chunk;
    state_tile<R> s, g;
    state_load(s, shape.s0, shape, a, place, column);
    state_steps(m, p, a, s, 0, a.steps, p.kept, kept, p.chunk);
    state_load(g, p.dlast, shape, a, place, column);
    for (int64_t c = chunks - 1; c >= 0; c--) {
        const int64_t begin = c * p.chunk, end = begin + p.chunk < a.steps ? begin + p.chunk : a.steps;
        state_recall(s, state_kept<R>(p.kept, kept + c));
        state_steps(m, p, a, s, begin, end, p.states, states, 1);
        state_steps_back(m, p, a, g, begin, end, states);
    }
    state_save(g, p.ds0, shape, a, place, column);
}

template <int R> DEVICE void state_backward(const state_backward_params &p) {
    const state_task a = state_task_of<STATE_BACK_THREADS>(p.shape);
    if (a.room || p.shape.e == 0) { /* without columns gates that are Inf give no NaN */
        state_clear_room(p, a);
        return;
    }
    SHARED state_back_memory<R> m;
    state_backward_columns(m, p, a, state_first_kept(p, a), block_index() * p.chunk);
}

/* dq and dk, half a block those of a step and a group: sums over the group's heads and their blocks of columns. */
DEVICE void state_finish_keys(const state_backward_params &p) {
    enum { AHEAD = 2 }; /* there are twice as many as rows */
    const state_shape &s = p.shape;
    const int64_t at = block_index() * (SIMT_THREADS / STATE_KEY_THREADS) + thread_index() / STATE_KEY_THREADS,
                  row = at / s.groups, group = at - row * s.groups, batch = row / s.t, step = row - batch * s.t;
    const int n = (int)(s.h / s.groups * p.slots), width = 2 * (int)s.d;
    if (row >= p.rows) return;
    const float *const from = p.parts + at * n * width;
    for (int j = thread_index() % STATE_KEY_THREADS * AHEAD; j < width; j += STATE_KEY_THREADS * AHEAD) {
        float sum[AHEAD] = {};
#pragma unroll 8
        for (int i = 0; i < n; i++) {
            const packed<float, AHEAD> x = *(const packed<float, AHEAD> *)(from + (int64_t)i * width + j);
#pragma unroll
            for (int e = 0; e < AHEAD; e++) sum[e] += x.v[e];
        }
#pragma unroll
        for (int e = 0; e < AHEAD; e++) {
            const int64_t column = j + e;
            const state_rows &to = column < s.d ? p.dq : p.dk;
            state_put(to, batch * to.batch + step * to.step + group * to.head + (column < s.d ? column : column - s.d),
                      sum[e]);
        }
    }
}

/* The numbers of a step and head, each thread one of these. */
DEVICE void state_finish_steps(const state_backward_params &p) {
    const state_shape &s = p.shape;
    const int64_t at = block_index() * SIMT_THREADS + thread_index();
    if (at >= p.rows * s.h) return;
    const int64_t row = at / s.h, batch = row / s.t, step = row - batch * s.t;
    state_task a = {};
    a.batch = batch, a.head = at - row * s.h;
    float sum[STATE_SUMS] = {};
    for (int64_t i = 0; i < p.slots; i++)
        for (int k = 0; k < STATE_SUMS; k++) sum[k] += p.sums[(at * p.slots + i) * STATE_SUMS + k];
    if (p.dg.data) state_put(p.dg, state_at(p.dg, a, step, a.head), sum[0]);
    if (p.dbeta.data) state_put(p.dbeta, state_at(p.dbeta, a, step, a.head), sum[1]);
    if (!s.dt.data) return;
    float dt = fused(s.a[a.head], sum[0], sum[1]);
    if (s.softplus) dt *= sigmoid(state_raw_dt(s, a, step));
    /* a step of the room has no length, whatever dt is there */
    const bool room = s.cu && sum[0] == 0 && step >= s.cu[s.count];
    if (room) dt = 0;
    state_put(p.ddt, state_at(p.ddt, a, step, a.head), dt);
    float *const terms = p.terms + a.head * p.rows + row;
    terms[0] = room ? 0.0f : state_step_of(s, a, step).factor * sum[0];
    terms[s.h * p.rows] = sum[2];
    terms[2 * s.h * p.rows] = dt;
}

/* da, dd and ddt_bias: a block has a head. */
DEVICE void state_finish_heads(const state_backward_params &p) {
    const state_shape &s = p.shape;
    const int64_t which = block_index() / s.h, head = block_index() - which * s.h;
    const float *const from = p.terms + (which * s.h + head) * p.rows;
    float sum = 0;
    for (int64_t i = thread_index(); i < p.rows; i += SIMT_THREADS) sum += from[i];
    sum = group_sum<SIMT_THREADS>(sum);
    float *const to = which == 0 ? p.da : which == 1 ? p.dpast : p.ddt_bias;
    if (to && thread_index() == 0) to[head] = sum;
}

#endif
