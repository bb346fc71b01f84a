/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk of steps of a recurrence of matrices in shared memory: its rows in parts, its gates, products of rows. */
#ifndef TRINE_CUDA_STATE_MMA_CHUNK_H
#define TRINE_CUDA_STATE_MMA_CHUNK_H

#include <tile/mma.h>
#include <tile/vote.h>

#include "backends/simt/state/state.inl.h"
#include "state_mma_params.h"

/* What is not wild, in powers of two: elements of q and k, of v, of states; factors of v, rates, products of gates. */
#define STATE_MMA_MOST_STATE 0x1p32f
#define STATE_MMA_MOST_FACTOR 0x1p16f
#define STATE_MMA_MOST_RATE 0x1p4f
#define STATE_MMA_MOST_DECAY 0x1p8f
#define STATE_MMA_MOST_CHANGE 2.125f /* of rate |k|^2: what a step multiplies along k is -1.125 at least */

template <class T> struct state_mma_input;
template <> struct state_mma_input<bf16> {
    static constexpr int PARTS = STATE_MMA_INPUTS(false);
    /* Is one of two elements at least 2^12, or as v 2^24? */
    static DEVICE bool wild_key(uint32_t pair) { return ((pair & 0x7f807f80u) + 0x3a803a80u) & 0x80008000u; }
    static DEVICE bool wild_value(uint32_t pair) { return ((pair & 0x7f807f80u) + 0x34803480u) & 0x80008000u; }
};
template <> struct state_mma_input<f16> {
    static constexpr int PARTS = STATE_MMA_INPUTS(true);
    static DEVICE bool wild_key(uint32_t pair) { return ((pair & 0x7c007c00u) + 0x14001400u) & 0x80008000u; }
    static DEVICE bool wild_value(uint32_t pair) { return ((pair & 0x7c007c00u) + 0x04000400u) & 0x80008000u; }
};

DEVICE float state_mma_low(uint32_t pair) { return float_of_bits(pair << 16); }
DEVICE float state_mma_high(uint32_t pair) { return float_of_bits(pair & 0xffff0000u); }

/* Two numbers as sums of bf16, word i of parts i. */
DEVICE void state_mma_split(float x, float y, uint32_t (&part)[STATE_MMA_PARTS]) {
#pragma unroll
    for (int i = 0; i < STATE_MMA_PARTS; i++) {
        part[i] = bf16_pair(x, y);
        x -= state_mma_low(part[i]), y -= state_mma_high(part[i]);
    }
}
/* The same of two of any size, of which an infinity or a NaN is the first part; the others are then of no account. The
 * first is not rounded, so that no large one becomes an infinity. */
DEVICE void state_mma_split_any(float x, float y, uint32_t (&part)[STATE_MMA_PARTS]) {
    part[0] = bits_of_float(x) >> 16 | (bits_of_float(y) & 0xffff0000u);
    x -= state_mma_low(part[0]), y -= state_mma_high(part[0]);
    part[1] = bf16_pair(x, y);
    x -= state_mma_low(part[1]), y -= state_mma_high(part[1]);
    part[2] = bf16_pair(x, y);
}

/* Rows and numbers of a chunk. */
template <int D, int INPUTS> struct state_mma_memory {
    enum { KEY = STATE_MMA_ROW(D), VALUE = STATE_MMA_ROW(STATE_MMA_WIDTH) };
    char k[INPUTS][STATE_MMA_STEPS * KEY], q[INPUTS][STATE_MMA_STEPS * KEY], v[INPUTS][STATE_MMA_STEPS * VALUE];
    char h[STATE_MMA_PARTS][D * VALUE], u[STATE_MMA_PARTS][STATE_MMA_STEPS * VALUE];
    union {
        float decays[STATE_MMA_STEPS * STATE_MMA_STEPS];      /* L with the factor */
        char added[STATE_MMA_PARTS][STATE_MMA_STEPS * VALUE]; /* u as the state after the chunk has it */
    };
    float decay[STATE_MMA_STEPS], factor[STATE_MMA_STEPS], rate[STATE_MMA_STEPS];
    float before[STATE_MMA_STEPS], after[STATE_MMA_STEPS]; /* A, and L(last) with the factor */
    int wild[2][STATE_MMA_WIDTH + 1];                      /* of chunks by turns, the columns, and all of them */
};
template <int D, int INPUTS> struct state_mma_ready_memory {
    enum { KEY = STATE_MMA_ROW(D) };
    char k[INPUTS][STATE_MMA_STEPS * KEY];
    float decays[STATE_MMA_STEPS * STATE_MMA_STEPS];
    float m[STATE_MMA_STEPS][STATE_MMA_PITCH], inverse[STATE_MMA_STEPS][STATE_MMA_PITCH];
    float decay[STATE_MMA_STEPS], factor[STATE_MMA_STEPS], rate[STATE_MMA_STEPS];
    float before[STATE_MMA_STEPS], after[STATE_MMA_STEPS];
    int wild[2];
};

/* A lane's rows of the matrices of 16 by 16, from `row` and `column` of the product on; `turned`: rows in memory go
 * along the other side. */
DEVICE void state_mma_left(uint32_t (&r)[4], const char *from, int pitch, int row, int k) {
    const int lane = thread_index() % WARP;
    load_matrices<false>(r, from + (row + lane % 16) * pitch + (k + lane / 16 * 8) * 2);
}
DEVICE void state_mma_left_turned(uint32_t (&r)[4], const char *from, int pitch, int row, int k) {
    const int lane = thread_index() % WARP;
    load_matrices<true>(r, from + (k + lane % 8 + lane / 16 * 8) * pitch + (row + lane / 8 % 2 * 8) * 2);
}
DEVICE void state_mma_right(uint32_t (&r)[4], const char *from, int pitch, int k, int column) {
    const int lane = thread_index() % WARP;
    load_matrices<false>(r, from + (column + lane % 8 + lane / 16 * 8) * pitch + (k + lane / 8 % 2 * 8) * 2);
}
DEVICE void state_mma_right_turned(uint32_t (&r)[4], const char *from, int pitch, int k, int column) {
    const int lane = thread_index() % WARP;
    load_matrices<true>(r, from + (k + lane % 16) * pitch + (column + lane / 16 * 8) * 2);
}
/* 16 columns of sums. */
DEVICE void state_mma_add(float (&sum)[4], float (&next)[4], const uint32_t (&a)[4], const uint32_t (&b)[4]) {
    warp_multiply(bf16(), sum, a, b[0], b[1]);
    warp_multiply(bf16(), next, a, b[2], b[3]);
}

/* Of 64 rows and 32 columns a warp has 16 and its share of columns; where a thread's sums are, e = 0 .. 3 of the 8
 * columns from 8 c on; and of the 64 columns that are steps, all of which it has. */
struct state_mma_place {
    int warp, share, row, column, step;
    DEVICE state_mma_place()
        : warp(thread_index() / WARP % 4), share(thread_index() / (4 * WARP) * STATE_MMA_OWN),
          row(warp * 16 + thread_index() % WARP / 4), column(share + thread_index() % 4 * 2),
          step(thread_index() % 4 * 2) {}
};

/* A thread's share of 64 rows of COLUMNS elements on their way. */
template <class T, int COLUMNS, int THREADS = STATE_MMA_THREADS> struct state_mma_rows {
    enum { PIECES = COLUMNS / 8, STEP = THREADS / PIECES, COUNT = STATE_MMA_STEPS / STEP };
    using bits = typename T::bits;
    packed<uint32_t, 4> piece[COUNT];

    static DEVICE int row() { return thread_index() % THREADS / PIECES; }
    static DEVICE int column() { return thread_index() % PIECES * 8; }

    /* Those of n steps, of which `columns` elements are there; the others are 0. */
    DEVICE void load(const state_rows &x, int64_t at, int n, int64_t columns, bool wide) {
        const bits *from = (const bits *)x.data + at + row() * x.step + column();
        const int64_t left = columns - column(), step = STEP * x.step;
        if (wide && n == STATE_MMA_STEPS && columns >= COLUMNS) {
#pragma unroll
            for (int i = 0; i < COUNT; i++, from += step) piece[i] = *(const packed<uint32_t, 4> *)from;
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++, from += step) {
            piece[i] = { { 0, 0, 0, 0 } };
#pragma unroll 1
            for (int e = row() + i * STEP < n ? (int)(left < 8 ? left : 8) : 0; e-- > 0;) {
#pragma unroll
                for (int j = 3; j > 0; j--) piece[i].v[j] = piece[i].v[j] << 16 | piece[i].v[j - 1] >> 16;
                piece[i].v[0] = piece[i].v[0] << 16 | from[e];
            }
        }
    }
    /* To shared memory, in parts. `see(pair, column)` sees all pairs. */
    template <int INPUTS, int BYTES, class See> DEVICE void put(char (&to)[INPUTS][BYTES], See see) const {
        const int place = row() * STATE_MMA_ROW(COLUMNS) + column() * 2;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            packed<uint32_t, 4> high = piece[i], low;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                see(high.v[e], column() + e * 2);
                if constexpr (INPUTS == 2) {
                    const float a = T::get((bits)high.v[e]), b = T::get((bits)(high.v[e] >> 16));
                    high.v[e] = bf16_pair(a, b);
                    low.v[e] = bf16_pair(magnitude(a) < infinity() ? a - state_mma_low(high.v[e]) : 0.0f,
                                         magnitude(b) < infinity() ? b - state_mma_high(high.v[e]) : 0.0f);
                }
            }
            *(packed<uint32_t, 4> *)(to[0] + place + i * STEP * STATE_MMA_ROW(COLUMNS)) = high;
            if constexpr (INPUTS == 2)
                *(packed<uint32_t, 4> *)(to[1] + place + i * STEP * STATE_MMA_ROW(COLUMNS)) = low;
        }
    }
};

/* Two elements of a row that was fetched. */
template <int INPUTS, int BYTES>
DEVICE void state_mma_two(const char (&from)[INPUTS][BYTES], int place, float &x, float &y) {
    x = y = 0;
#pragma unroll
    for (int i = 0; i < INPUTS; i++) {
        const uint32_t pair = *(const uint32_t *)(from[i] + place);
        x += state_mma_low(pair), y += state_mma_high(pair);
    }
}
template <int INPUTS, int BYTES> DEVICE float state_mma_one(const char (&from)[INPUTS][BYTES], int place) {
    float x = 0;
#pragma unroll
    for (int i = 0; i < INPUTS; i++) x += bf16::get(*(const uint16_t *)(from[i] + place));
    return x;
}

/* How many steps of a chunk there are. */
DEVICE int state_mma_count(const state_task &a, int64_t first) {
    return a.steps - first < STATE_MMA_STEPS ? (int)(a.steps - first) : (int)STATE_MMA_STEPS;
}

/* What a step has in memory, on its way; of the first threads. Behind n steps nothing changes. */
struct state_mma_given {
    float g, beta, dt, bias;
    bool there;

    DEVICE void load(const state_shape &s, const state_task &a, int64_t first, int n) {
        const int64_t step = first + thread_index();
        there = thread_index() < n;
        g = there && s.g.data ? state_get(s.g, state_at(s.g, a, step, a.head)) : 0.0f;
        beta = there && s.beta.data ? state_get(s.beta, state_at(s.beta, a, step, a.head)) : 0.0f;
        dt = there && s.dt.data ? state_get(s.dt, state_at(s.dt, a, step, a.head)) : 0.0f;
        bias = s.dt_bias ? s.dt_bias[a.head] : 0.0f;
    }
    /* As state_step_of() has it. */
    template <class Memory> DEVICE void put(Memory &m, const state_shape &s, const state_task &a, int &wild) const {
        const int i = thread_index();
        if (i >= STATE_MMA_STEPS) return;
        state_step x = { there ? 1.0f : 0.0f, 1.0f, there ? 1.0f : 0.0f };
        if (there && s.g.data) x.decay = state_power(g);
        if (there && s.beta.data) x.rate = beta;
        if (there && s.dt.data) {
            const float raw = dt + bias;
            x.factor = s.softplus ? state_softplus(raw) : raw;
            x.decay = state_power(x.factor * s.a[a.head]);
        }
        if (!(magnitude(x.factor) < STATE_MMA_MOST_FACTOR) || !(magnitude(x.rate) < STATE_MMA_MOST_RATE)) wild = 1;
        m.factor[i] = x.factor, m.decay[i] = x.decay, m.rate[i] = x.rate;
    }
};

/* Where L(t, s) is: neither rows of neighbours nor pairs of 8 rows meet in a bank more than twice. */
DEVICE int state_mma_decay(int t, int s) {
    return t * STATE_MMA_STEPS + (s + t % 4 * 8 + t / 4 % 4 * 2) % STATE_MMA_STEPS;
}

/* Once gates and factors are there, the products of gates, with the factor or without. */
template <bool FACTOR = true, class Memory> DEVICE void state_mma_decays(Memory &m, int &wild) {
    enum { AHEAD = 16 };
    const int t = thread_index();
    if (t >= STATE_MMA_STEPS) return;
    float run = 1, most = 1;
#pragma unroll 1
    for (int first = STATE_MMA_STEPS - AHEAD; first >= 0; first -= AHEAD) { /* all threads together: no branches */
        float decay[AHEAD], factor[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) decay[i] = m.decay[first + i], factor[i] = m.factor[first + i];
#pragma unroll
        for (int i = AHEAD - 1; i >= 0; i--) {
            m.decays[state_mma_decay(t, first + i)] =
                FACTOR ? run * factor[i] : run; /* above the diagonal of no account */
            run *= first + i <= t ? decay[i] : 1.0f;
            most = run <= most ? most : run;
        }
    }
    m.before[t] = run;
    if (!(most < STATE_MMA_MOST_DECAY)) wild = 1;
}
/* And those up to the last step. */
template <class Memory> DEVICE void state_mma_last_decays(Memory &m) {
    const int s = thread_index();
    if (s < STATE_MMA_STEPS) m.after[s] = m.decays[state_mma_decay(STATE_MMA_STEPS - 1, s)];
}

/* The chunks of a sequence among those of all. */
template <class Params> DEVICE int64_t state_mma_first_chunk(const Params &p, const state_task &a) {
    return p.all.shape.cu ? a.first / STATE_MMA_STEPS + a.sequence : a.sequence * p.chunks;
}
/* The sequence of chunk `at`, and its place in it. */
template <int THREADS, class Params> DEVICE state_task state_mma_chunk_of(const Params &p, int64_t at, int64_t &first) {
    const state_shape &s = p.all.shape;
    state_task a = {};
    a.astray = state_astray<THREADS>(s);
    a.steps = s.t;
    if (a.astray) return a;
    if (!s.cu) {
        a.sequence = a.batch = at / p.chunks;
        first = (at - a.sequence * p.chunks) * STATE_MMA_STEPS;
        return a;
    }
    int64_t low = 0, high = s.count - 1; /* the last sequence that begins at or before it */
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (s.cu[middle] / STATE_MMA_STEPS + middle <= at)
            low = middle;
        else
            high = middle - 1;
    }
    a.sequence = low, a.first = s.cu[low], a.steps = s.cu[low + 1] - a.first;
    first = (at - a.first / STATE_MMA_STEPS - low) * STATE_MMA_STEPS;
    return a;
}

/* The warp's 16 rows of products of two inputs' rows, up to the diagonal, or with UPPER from there on. */
template <int D, bool UPPER = false, int INPUTS, int BYTES>
DEVICE void state_mma_scores(float (&score)[STATE_MMA_STEPS / 8][4], const char (&left)[INPUTS][BYTES],
                             const char (&right)[INPUTS][BYTES]) {
    const int warp = state_mma_place().warp;
#pragma unroll
    for (int c = 0; c < STATE_MMA_STEPS / 8; c++)
#pragma unroll
        for (int e = 0; e < 4; e++) score[c][e] = 0;
#pragma unroll 4
    for (int k = 0; k < D; k += 16) {
        uint32_t x[INPUTS][4];
#pragma unroll
        for (int i = 0; i < INPUTS; i++) state_mma_left(x[i], left[i], STATE_MMA_ROW(D), warp * 16, k);
#pragma unroll
        for (int c = 0; c < STATE_MMA_STEPS / 16; c++) {
            if (UPPER ? c < warp : c > warp) continue;
#pragma unroll
            for (int j = 0; j < INPUTS; j++) {
                uint32_t y[4];
                state_mma_right(y, right[j], STATE_MMA_ROW(D), k, c * 16);
#pragma unroll
                for (int i = 0; i < INPUTS; i++) state_mma_add(score[2 * c], score[2 * c + 1], x[i], y);
            }
        }
    }
}

#endif
