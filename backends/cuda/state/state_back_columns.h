/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk of a head in shared memory, for gradients: 32 columns at a time of states and of steps' rows, and what they
 * give to the gradient of v. */
#ifndef TRINE_CUDA_STATE_BACK_COLUMNS_H
#define TRINE_CUDA_STATE_BACK_COLUMNS_H

#include "state_back_params.h"
#include "state_back_pass.h"

template <bool FIRST, class X, class Y> struct state_back_either {
    using type = X;
};
template <class X, class Y> struct state_back_either<false, X, Y> {
    using type = Y;
};

template <int D, int INPUTS, bool RULED> struct state_back_chunk_memory {
    enum { KEY = STATE_MMA_ROW(D), VALUE = STATE_MMA_ROW(STATE_MMA_WIDTH), STEP = STATE_MMA_ROW(STATE_MMA_STEPS) };
    struct columns {
        char s[STATE_MMA_PARTS][D * VALUE], g[STATE_MMA_PARTS][D * VALUE];
    };
    struct steps {
        char w[STATE_MMA_PARTS][STATE_MMA_STEPS * STEP], z[STATE_MMA_PARTS][STATE_MMA_STEPS * STEP];
    };
    struct known {
        char dout[INPUTS][STATE_MMA_STEPS * VALUE], u[INPUTS][STATE_MMA_STEPS * VALUE]; /* u is v */
        char weights[STATE_MMA_PARTS][STATE_MMA_STEPS * STEP];
    };
    struct ruled {
        char dout[INPUTS][STATE_MMA_STEPS * VALUE];
        char u[STATE_MMA_PARTS][STATE_MMA_STEPS * VALUE], dv[STATE_MMA_PARTS][STATE_MMA_STEPS * VALUE];
    };
    using rows = typename state_back_either<RULED, ruled, known>::type;
    char q[INPUTS][STATE_MMA_STEPS * KEY], k[INPUTS][STATE_MMA_STEPS * KEY];
    union {
        columns column;
        steps step;
    };
    union {
        rows row;
        float past[STATE_MMA_STEPS + 1][STATE_BACK_PITCH];
    };
    float number[STATE_BACK_NUMBERS][STATE_MMA_STEPS];
    /* of rows, by each share of columns: what goes past gates; du w or du x, dout x */
    float dots[3][4][STATE_MMA_STEPS], sum[2][4][STATE_MMA_STEPS];
    float all[STATE_BACK_CHUNK_THREADS / WARP];
};

/* Part i of one number and part j of another are of account, f32 being the sum of three. */
template <int X, int Y> DEVICE constexpr bool state_back_counts(int i, int j) {
    return X < STATE_MMA_PARTS || Y < STATE_MMA_PARTS || i + j < STATE_MMA_PARTS;
}

/* A thread's sums: E S; of rows du w or du x, and dout x. */
struct state_back_totals {
    float both, one[2], two[2];
    bool bad;
};

/* Four numbers in parts to a row of 32. */
DEVICE void state_back_put_four(char *to, int bytes, const packed<float, 4> &x) {
    uint32_t low[STATE_MMA_PARTS], high[STATE_MMA_PARTS];
    state_mma_split(x.v[0], x.v[1], low), state_mma_split(x.v[2], x.v[3], high);
#pragma unroll
    for (int j = 0; j < STATE_MMA_PARTS; j++) *(packed<uint32_t, 2> *)(to + j * bytes) = { { low[j], high[j] } };
}

/* A thread's part of 32 columns on their way: of the states, and of the steps' rows. Where there is room for it in
 * shared memory, they come while the columns before them are computed. */
template <class T, int D, bool RULED> struct state_back_ahead_columns {
    enum { COUNT = D * STATE_MMA_WIDTH / 4 / STATE_BACK_CHUNK_THREADS };
    packed<float, 4> *staged; /* the thread's; NULL: there is no room */
    state_mma_rows<T, STATE_MMA_WIDTH, STATE_BACK_CHUNK_THREADS / 2> rows;

    /* dout in the first half of the threads, without the delta rule v in the second. */
    static DEVICE bool second() { return thread_index() >= STATE_BACK_CHUNK_THREADS / 2; }
    /* Number i of what a thread has: of the state, of its gradient, of w, of du. */
    static DEVICE const float *at(const state_back_params &p, int i, int64_t block) {
        const int64_t state = state_back_block(p, block_index(), block, D) + thread_index() * 4,
                      step = state_back_block(p, block_index(), block, STATE_MMA_STEPS) + thread_index() * 4;
        if (i < COUNT) return p.states + state + i * STATE_BACK_CHUNK_THREADS * 4;
        if (i < 2 * COUNT) return p.gradients + state + (i - COUNT) * STATE_BACK_CHUNK_THREADS * 4;
        return (i == 2 * COUNT ? p.left : p.of) + step;
    }
    DEVICE void load(const state_back_params &p, const state_task &a, int64_t first, int n, int64_t block) {
        if (staged) {
#pragma unroll
            for (int i = 0; i < 2 * COUNT + 2 * RULED; i++)
                copy_bytes<16>(staged + i * STATE_BACK_CHUNK_THREADS, at(p, i, block), 16);
            copy_commit();
        }
        const state_rows &tensor = second() ? p.all.shape.v : p.all.dout;
        const int64_t left = block * STATE_MMA_WIDTH;
        if (!(RULED && second()))
            rows.load(tensor, state_at(tensor, a, first, a.head) + left, n, p.all.shape.e - left, p.wide);
    }
    DEVICE packed<float, 4> get(const state_back_params &p, int i, int64_t block) const {
        return staged ? staged[i * STATE_BACK_CHUNK_THREADS] : *(const packed<float, 4> *)at(p, i, block);
    }
};

/* They go to shared memory as operands, and the next ones are asked for. */
template <class T, int D, bool RULED>
DEVICE void state_back_fetch(const state_back_params &p,
                             state_back_chunk_memory<D, state_mma_input<T>::PARTS, RULED> &m,
                             state_back_ahead_columns<T, D, RULED> &ahead, const state_task &a, int64_t first, int n,
                             int64_t block, state_back_totals &total) {
    enum { COUNT = state_back_ahead_columns<T, D, RULED>::COUNT, VALUE = STATE_MMA_ROW(STATE_MMA_WIDTH) };
    const int row = thread_index() / 8, place = row * VALUE + thread_index() % 8 * 8;
    packed<float, 4> before[COUNT], after[COUNT], w, of;
    if (ahead.staged) copy_wait<0>();
#pragma unroll
    for (int i = 0; i < COUNT; i++) before[i] = ahead.get(p, i, block), after[i] = ahead.get(p, COUNT + i, block);
    if constexpr (RULED) w = ahead.get(p, 2 * COUNT, block), of = ahead.get(p, 2 * COUNT + 1, block);
    sync_block(); /* nobody reads the columns before any more */
    const auto see = [&](uint32_t pair, int) { total.bad |= state_mma_input<T>::wild_value(pair); };
    if (!ahead.second())
        ahead.rows.put(m.row.dout, see);
    else if constexpr (!RULED)
        ahead.rows.put(m.row.u, see);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            total.both = fused(before[i].v[e], after[i].v[e], total.both);
            total.bad |= !(magnitude(before[i].v[e]) < STATE_MMA_MOST_STATE) ||
                         !(magnitude(after[i].v[e]) < STATE_MMA_MOST_STATE);
        }
        const int at = place + i * (STATE_BACK_CHUNK_THREADS / 8) * VALUE;
        state_back_put_four(m.column.s[0] + at, sizeof m.column.s[0], before[i]);
        state_back_put_four(m.column.g[0] + at, sizeof m.column.g[0], after[i]);
    }
    if constexpr (RULED) {
        const float rate = m.number[STATE_BACK_RATE][row];
        packed<float, 4> u, dv;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            total.one[0] = fused(of.v[e], w.v[e], total.one[0]);
            u.v[e] = rate * w.v[e], dv.v[e] = rate * of.v[e];
        }
        state_back_put_four(m.row.u[0] + place, sizeof m.row.u[0], u);
        state_back_put_four(m.row.dv[0] + place, sizeof m.row.dv[0], dv);
    }
    if (block + 1 < p.columns) ahead.load(p, a, first, n, block + 1);
    sync_block();
}

/* 32 steps of k by 8 columns: those of two products. */
DEVICE void state_back_eight(uint32_t (&r)[4], const char *from, int pitch, int k, int column) {
    load_matrices<true>(r, from + (k + thread_index() % WARP) * pitch + column * 2);
}

/* Without the delta rule, the gradient of v or of x in 32 columns: a warp has 16 rows of 8. */
template <class T, int D>
DEVICE void state_back_value(const state_back_params &p,
                             state_back_chunk_memory<D, state_mma_input<T>::PARTS, false> &m, const state_task &a,
                             int64_t first, int n, int64_t block, state_back_totals &total) {
    enum { INPUTS = state_mma_input<T>::PARTS };
    using Memory = state_back_chunk_memory<D, INPUTS, false>;
    const state_shape &s = p.all.shape;
    const state_mma_place place;
    const int share = place.share / 2, own = place.warp * 16;
    float of[4] = {};
#pragma unroll 2
    for (int k = 0; k < D; k += 32) {
        uint32_t x[2][INPUTS][4];
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int i = 0; i < INPUTS; i++) state_mma_left(x[half][i], m.k[i], Memory::KEY, own, k + half * 16);
#pragma unroll
        for (int j = STATE_MMA_PARTS - 1; j >= 0; j--) {
            uint32_t y[4];
            state_back_eight(y, m.column.g[j], Memory::VALUE, k, share);
#pragma unroll
            for (int i = INPUTS - 1; i >= 0; i--) {
                warp_multiply(bf16(), of, x[0][i], y[0], y[1]);
                warp_multiply(bf16(), of, x[1][i], y[2], y[3]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < 4; e++) of[e] *= m.number[STATE_BACK_AFTER][place.row + e / 2 * 8];
#pragma unroll
    for (int k = 0; k < STATE_MMA_STEPS; k += 32) {
        if (k + 16 < own) continue;
        uint32_t y[INPUTS][4];
#pragma unroll
        for (int j = 0; j < INPUTS; j++) state_back_eight(y[j], m.row.dout[j], Memory::VALUE, k, share);
#pragma unroll
        for (int i = STATE_MMA_PARTS - 1; i >= 0; i--) {
            uint32_t x[4];
            if (k >= own) {
                state_mma_left_turned(x, m.row.weights[i], Memory::STEP, own, k);
#pragma unroll
                for (int j = INPUTS - 1; j >= 0; j--) warp_multiply(bf16(), of, x, y[j][0], y[j][1]);
            }
            state_mma_left_turned(x, m.row.weights[i], Memory::STEP, own, k + 16);
#pragma unroll
            for (int j = INPUTS - 1; j >= 0; j--) warp_multiply(bf16(), of, x, y[j][2], y[j][3]);
        }
    }
    const int column = share + thread_index() % 4 * 2;
    const int64_t left = block * STATE_MMA_WIDTH + column;
    const float past = s.past ? s.past[a.head] : 0.0f;
    typename T::bits *const dv = (typename T::bits *)p.all.dv.data + state_at(p.all.dv, a, first, a.head) + left;
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
        const int row = place.row + e / 2 * 8, at = row * Memory::VALUE + column * 2;
        const float factor = m.number[STATE_BACK_FACTOR][row];
        float x[2], by[2], y[2];
        state_mma_two(m.row.u, at, x[0], x[1]), state_mma_two(m.row.dout, at, by[0], by[1]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            total.one[e / 2] = fused(of[e + i], x[i], total.one[e / 2]);
            total.two[e / 2] = fused(by[i], x[i], total.two[e / 2]);
            y[i] = factor * of[e + i];
            if (s.past) y[i] = fused(past, by[i], y[i]);
        }
        if (row < n) state_back_write<T>(p, dv + row * p.all.dv.step, s.e - left, y[0], y[1]);
    }
}

#endif
