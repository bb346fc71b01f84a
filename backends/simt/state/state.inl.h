/* SPDX-License-Identifier: Apache-2.0 */
/* What recurrences of matrices share on devices. A block has some columns of a head's state in its registers: 16
 * threads share 4 columns, of whose rows each has every 16th. */
#ifndef TRINE_SIMT_STATE_INL_H
#define TRINE_SIMT_STATE_INL_H

#include "state.h"
#include "backends/simt/core/math.h"

/* A block's head, columns and steps: `sequence` is the count in the room behind the last. Where offsets are astray the
 * room is all steps, and no sequence has any. */
struct state_task {
    int64_t sequence, batch, first, steps, head, group, block;
    bool room, astray;
};

/* Do offsets not ascend from 0 to at most t? All threads of a block ask together. */
template <int THREADS> DEVICE bool state_astray(const state_shape &s) {
    if (!s.cu) return false;
    float bad = s.cu[0] != 0 || s.cu[s.count] > s.t ? 1.0f : 0.0f;
    for (int64_t i = thread_index(); i < s.count; i += THREADS)
        if (s.cu[i + 1] < s.cu[i]) bad = 1.0f;
    return group_sum<THREADS>(bad) > 0;
}

/* Task `index`, of a head and a block of its columns. */
template <int THREADS> DEVICE state_task state_task_of(const state_shape &s, int64_t index) {
    state_task a = {};
    const int64_t head = index / s.blocks;
    a.block = index - head * s.blocks;
    a.sequence = head / s.h;
    a.head = head - a.sequence * s.h;
    a.group = a.head / (s.h / s.groups);
    a.astray = state_astray<THREADS>(s);
    a.steps = s.t;
    if (!s.cu) {
        a.batch = a.sequence;
        return a;
    }
    a.room = a.sequence == s.count;
    a.first = a.astray ? 0 : s.cu[a.sequence];
    a.steps = a.room ? s.t - a.first : a.astray ? 0 : s.cu[a.sequence + 1] - a.first;
    return a;
}

template <int THREADS> DEVICE state_task state_task_of(const state_shape &s) {
    return state_task_of<THREADS>(s, block_index());
}

DEVICE float state_get(const state_rows &x, int64_t at) {
    if (x.type == STATE_F32) return load_one<f32>(x.data, at);
    return x.type == STATE_BF16 ? load_one<bf16>(x.data, at) : load_one<f16>(x.data, at);
}
DEVICE void state_put(const state_rows &x, int64_t at, float y) {
    if (x.type == STATE_F32)
        store_one<f32>(x.data, at, y);
    else if (x.type == STATE_BF16)
        store_one<bf16>(x.data, at, y);
    else
        store_one<f16>(x.data, at, y);
}
/* Where what a step of a sequence has begins. */
DEVICE int64_t state_at(const state_rows &x, const state_task &a, int64_t step, int64_t head) {
    return a.batch * x.batch + (a.first + step) * x.step + head * x.head;
}

/* log(1 + e^x): of 1 + e^-|x| the logarithm, for what the sum has lost. */
DEVICE float state_softplus(float x) {
    const float power = exp_of(-magnitude(x)), sum = 1.0f + power, lost = sum - 1.0f;
    const float log1p = lost == 0 ? power : log_of(sum) * (power / lost);
    return x != x ? x : (x > 0 ? x : 0.0f) + log1p;
}
DEVICE float state_raw_dt(const state_shape &s, const state_task &a, int64_t step) {
    return state_get(s.dt, state_at(s.dt, a, step, a.head)) + (s.dt_bias ? s.dt_bias[a.head] : 0.0f);
}

/* What the steps of a head have: the factor of v, the gate and the rate. */
struct state_step {
    float factor, decay, rate;
};
DEVICE float state_power(float x) { return x > 89.0f ? infinity() : exp_of(x); }
DEVICE state_step state_step_of(const state_shape &s, const state_task &a, int64_t step) {
    state_step x = { 1.0f, 1.0f, 1.0f };
    if (s.g.data) x.decay = state_power(state_get(s.g, state_at(s.g, a, step, a.head)));
    if (s.beta.data) x.rate = state_get(s.beta, state_at(s.beta, a, step, a.head));
    if (s.dt.data) {
        const float raw = state_raw_dt(s, a, step);
        x.factor = s.softplus ? state_softplus(raw) : raw;
        x.decay = state_power(x.factor * s.a[a.head]);
    }
    return x;
}

/* Steps in shared memory: ROWS of k and of q, WIDTH of v. */
template <int STEPS, int ROWS, int WIDTH> struct state_stage {
    float k[STEPS][ROWS], q[STEPS][ROWS], v[STEPS][WIDTH];
    state_step step[STEPS];
};

/* Steps first .. first+n-1, each thread of the block taking a share; what is not there is 0. v is as it is given. */
template <int THREADS, int STEPS, int ROWS, int WIDTH>
DEVICE void state_fetch(state_stage<STEPS, ROWS, WIDTH> &to, const state_shape &s, const state_task &a, int64_t first,
                        int n, bool with_q) {
    for (int i = thread_index(); i < n * ROWS; i += THREADS) {
        const int step = i / ROWS, r = i % ROWS;
        const bool there = r < s.d;
        to.k[step][r] = there ? state_get(s.k, state_at(s.k, a, first + step, a.group) + r) : 0.0f;
        if (with_q) to.q[step][r] = there ? state_get(s.q, state_at(s.q, a, first + step, a.group) + r) : 0.0f;
    }
    for (int i = thread_index(); i < n * WIDTH; i += THREADS) {
        const int step = i / WIDTH;
        const int64_t column = a.block * WIDTH + i % WIDTH;
        to.v[step][i % WIDTH] = column < s.e ? state_get(s.v, state_at(s.v, a, first + step, a.head) + column) : 0.0f;
    }
    for (int i = thread_index(); i < n; i += THREADS) to.step[i] = state_step_of(s, a, first + i);
}

/* A thread's place in its block: `lane` of its 16, and its first column in the block. */
struct state_place {
    int lane, column;
};
DEVICE state_place state_place_of() {
    return { thread_index() % STATE_LANES, thread_index() / STATE_LANES * STATE_COLUMNS };
}

/* Sums of each column over the 16 threads: of column (lane / 4) % 4 in each of them, and of all four in all. */
DEVICE float state_sum_one(const float (&x)[STATE_COLUMNS], int lane) {
    const bool high = lane & 8, odd = lane & 4;
    float a = high ? x[2] : x[0], b = high ? x[3] : x[1];
    a += shuffle_xor(high ? x[0] : x[2], 8);
    b += shuffle_xor(high ? x[1] : x[3], 8);
    float sum = odd ? b : a;
    sum += shuffle_xor(odd ? a : b, 4);
    sum += shuffle_xor(sum, 2);
    return sum + shuffle_xor(sum, 1);
}
DEVICE void state_sum_all(float (&x)[STATE_COLUMNS], int lane) {
    const bool high = lane & 8, odd = lane & 4;
    const float own = state_sum_one(x, lane), other = shuffle_xor(own, 4), a = odd ? other : own, b = odd ? own : other,
                c = shuffle_xor(a, 8), d = shuffle_xor(b, 8);
    x[0] = high ? c : a, x[1] = high ? d : b, x[2] = high ? a : c, x[3] = high ? b : d;
}

/* Of two numbers one: as values, since a choice of places keeps arrays in memory. */
DEVICE float state_chosen(bool second, float x, float y) { return second ? y : x; }

/* Half as many sums: each thread has given half of them to the one that differs in this bit, and taken its others. */
template <int N> DEVICE void state_halve(const float (&x)[2 * N], float (&y)[N], bool second, int mask) {
#pragma unroll
    for (int i = 0; i < N; i++)
        y[i] = state_chosen(second, x[i], x[i + N]) + shuffle_xor(state_chosen(second, x[i + N], x[i]), mask);
}

/* Sums of 16 numbers over the 16 threads, of number `lane` in each. */
DEVICE float state_sum_each(const float (&x)[STATE_LANES], int lane) {
    float a[8], b[4], c[2], d[1];
    state_halve(x, a, lane & 8, 8);
    state_halve(a, b, lane & 4, 4);
    state_halve(b, c, lane & 2, 2);
    state_halve(c, d, lane & 1, 1);
    return d[0];
}

/* A thread's part of a state: R rows of 4 columns. */
template <int R> struct state_tile {
    float x[R][STATE_COLUMNS];
};

/* A row's 4 columns in a tensor of states, from `column` on. */
DEVICE float *state_row(const state_matrices &t, const state_task &a, int64_t row, int64_t column) {
    return t.data + a.sequence * t.sequence + a.head * t.head + row * t.row + column * t.column;
}
/* Do they lie in one piece of 16 bytes? */
DEVICE bool state_piece(const state_matrices &t, const float *at, int64_t column, int64_t e) {
    return t.column == 1 && column + STATE_COLUMNS <= e && (uintptr_t)at % 16 == 0;
}

/* From and to a tensor of states; what is not there is 0. */
template <int R>
DEVICE void state_load(state_tile<R> &s, const state_matrices &from, const state_shape &shape, const state_task &a,
                       const state_place &p, int64_t column) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int64_t row = r * STATE_LANES + p.lane;
        const bool there = from.data && row < shape.d;
        const float *const at = there ? state_row(from, a, row, column) : nullptr;
        if (there && state_piece(from, at, column, shape.e)) {
            const packed<float, STATE_COLUMNS> piece = *(const packed<float, STATE_COLUMNS> *)at;
#pragma unroll
            for (int c = 0; c < STATE_COLUMNS; c++) s.x[r][c] = piece.v[c];
            continue;
        }
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++) s.x[r][c] = there && column + c < shape.e ? at[c * from.column] : 0.0f;
    }
}
template <int R>
DEVICE void state_save(const state_tile<R> &s, const state_matrices &to, const state_shape &shape, const state_task &a,
                       const state_place &p, int64_t column) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int64_t row = r * STATE_LANES + p.lane;
        if (!to.data || row >= shape.d) continue;
        float *const at = state_row(to, a, row, column);
        float x[STATE_COLUMNS];
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++) x[c] = a.astray ? not_a_number() : s.x[r][c];
        if (state_piece(to, at, column, shape.e)) {
            store_whole(x, at);
            continue;
        }
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++)
            if (column + c < shape.e) at[c * to.column] = x[c];
    }
}

/* What is added along k: v times its factor, or the rate times what is left of v; w is that without the rate. `s` is
 * the state before the step. */
template <int R>
DEVICE void state_correction(const state_shape &shape, const state_tile<R> &s, const state_step &x, const float *k,
                             const float *v, int lane, float (&w)[STATE_COLUMNS], float (&u)[STATE_COLUMNS]) {
#pragma unroll
    for (int c = 0; c < STATE_COLUMNS; c++) u[c] = w[c] = shape.dt.data ? x.factor * v[c] : v[c];
    if (!shape.beta.data) return;
    float p[STATE_COLUMNS] = {};
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++) p[c] = fused(k[r * STATE_LANES + lane], s.x[r][c], p[c]);
    state_sum_all(p, lane);
#pragma unroll
    for (int c = 0; c < STATE_COLUMNS; c++) {
        w[c] = fused(-x.decay, p[c], v[c]);
        u[c] = x.rate * w[c];
    }
}

template <int R>
DEVICE void state_advance(state_tile<R> &s, const state_step &x, const float *k, const float (&u)[STATE_COLUMNS],
                          int lane) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int c = 0; c < STATE_COLUMNS; c++) s.x[r][c] = fused(x.decay, s.x[r][c], k[r * STATE_LANES + lane] * u[c]);
}

/* The block's columns of the steps of the room behind the last sequence: 0, or NaN if offsets are astray. */
template <int THREADS, int WIDTH>
DEVICE void state_clear(const state_shape &s, const state_task &a, const state_rows &y) {
    for (int64_t i = thread_index(); i < a.steps * WIDTH; i += THREADS) {
        const int64_t column = a.block * WIDTH + i % WIDTH;
        if (column < s.e) state_put(y, state_at(y, a, i / WIDTH, a.head) + column, a.astray ? not_a_number() : 0.0f);
    }
}

#endif
