/* SPDX-License-Identifier: Apache-2.0 */
/* States before all chunks, and their gradients behind them: a block takes 32 columns through the chunks, forwards or
 * back. */
#ifndef TRINE_CUDA_STATE_BACK_PASS_H
#define TRINE_CUDA_STATE_BACK_PASS_H

#include "state_back_params.h"
#include "state_mma_state.h"
#include "state_mma_sums.h"

template <int D, int INPUTS> struct state_back_pass_memory {
    enum { KEY = STATE_MMA_ROW(D), VALUE = STATE_MMA_ROW(STATE_MMA_WIDTH) };
    char k[INPUTS][STATE_MMA_STEPS * KEY], v[INPUTS][STATE_MMA_STEPS * VALUE]; /* back q and dout, but with the rule */
    char added[STATE_MMA_PARTS][STATE_MMA_STEPS * VALUE];
    float number[STATE_BACK_NUMBERS][STATE_MMA_STEPS];
};
/* With the delta rule. */
template <int D, int INPUTS> struct state_back_ruled_memory : state_back_pass_memory<D, INPUTS> {
    using state_back_pass_memory<D, INPUTS>::KEY;
    using state_back_pass_memory<D, INPUTS>::VALUE;
    char q[INPUTS][STATE_MMA_STEPS * KEY], h[STATE_MMA_PARTS][D * VALUE], u[STATE_MMA_PARTS][STATE_MMA_STEPS * VALUE];
};

/* Where the workspace has a block of columns of a chunk and head. */
DEVICE int64_t state_back_block(const state_back_params &p, int64_t at, int64_t block, int rows) {
    return (at * p.columns + block) * rows * STATE_MMA_WIDTH;
}

/* The state to the workspace; and to shared memory in parts. */
template <int D> DEVICE void state_back_keep(state_mma_state<D> &h, float *to) {
    float *const at = to + h.row(0, 0) * STATE_MMA_WIDTH + h.column(0, 0);
#pragma unroll
    for (int i = 0; i < state_mma_state<D>::TILES; i++)
#pragma unroll
        for (int c = 0; c < state_mma_state<D>::COLUMNS; c++)
#pragma unroll
            for (int e = 0; e < 4; e += 2)
                store_words(at + (i * 16 + e / 2 * 8) * STATE_MMA_WIDTH + c * 8, bits_of_float(h.x[i][c][e]),
                            bits_of_float(h.x[i][c][e + 1]));
}
template <int D>
DEVICE void state_back_put(const state_mma_state<D> &h,
                           char (&to)[STATE_MMA_PARTS][D * STATE_MMA_ROW(STATE_MMA_WIDTH)]) {
    const int place = h.row(0, 0) * STATE_MMA_ROW(STATE_MMA_WIDTH) + h.column(0, 0) * 2;
#pragma unroll
    for (int i = 0; i < state_mma_state<D>::TILES; i++)
#pragma unroll
        for (int c = 0; c < state_mma_state<D>::COLUMNS; c++)
#pragma unroll
            for (int e = 0; e < 4; e += 2) {
                uint32_t part[STATE_MMA_PARTS];
                state_mma_split(h.x[i][c][e], h.x[i][c][e + 1], part);
#pragma unroll
                for (int j = 0; j < STATE_MMA_PARTS; j++)
                    *(uint32_t *)(to[j] + place + (i * 16 + e / 2 * 8) * STATE_MMA_ROW(STATE_MMA_WIDTH) + c * 16) =
                        part[j];
            }
}

/* sum += k h. */
template <int D, int INPUTS, int KEYS, int BYTES>
DEVICE void state_back_read(state_mma_sums &sum, const char (&k)[INPUTS][KEYS],
                            const char (&h)[STATE_MMA_PARTS][BYTES]) {
    const state_mma_place place;
#pragma unroll 4
    for (int row = 0; row < D; row += 16) {
        uint32_t x[INPUTS][4];
#pragma unroll
        for (int i = 0; i < INPUTS; i++) state_mma_left(x[i], k[i], STATE_MMA_ROW(D), place.warp * 16, row);
#pragma unroll
        for (int c = 0; c < STATE_MMA_OWN / 8; c += 2)
#pragma unroll
            for (int j = STATE_MMA_PARTS - 1; j >= 0; j--) {
                uint32_t y[4];
                state_mma_right_turned(y, h[j], STATE_MMA_ROW(STATE_MMA_WIDTH), row, place.share + c * 8);
#pragma unroll
                for (int i = 0; i < INPUTS; i++) state_mma_add(sum[c], sum[c + 1], x[i], y);
            }
    }
}

/* The inputs of a chunk on their way: keys or queries, or both, and rows of columns. */
template <class T, int D> struct state_back_ahead {
    state_mma_rows<T, D> k;
    state_mma_rows<T, STATE_MMA_WIDTH> v;
    float number;

    DEVICE void load(const state_back_params &p, const state_task &a, const state_rows &key, const state_rows &value,
                     int64_t at, int64_t first) {
        const state_shape &s = p.all.shape;
        const int n = state_mma_count(a, first);
        const int64_t column = a.block * STATE_MMA_WIDTH;
        k.load(key, state_at(key, a, first, a.group), n, s.d, p.wide);
        v.load(value, state_at(value, a, first, a.head) + column, n, s.e - column, p.wide);
        number = p.numbers[at * (STATE_BACK_NUMBERS * STATE_MMA_STEPS) + thread_index()];
    }
    template <class Memory> DEVICE void put(Memory &m) const {
        const auto see = [](uint32_t, int) {};
        k.put(m.k, see), v.put(m.v, see);
        m.number[thread_index() / STATE_MMA_STEPS][thread_index() % STATE_MMA_STEPS] = number;
    }
};

/* Each key head has one head: its gradients are no sums. */
DEVICE bool state_back_direct(const state_shape &s) { return s.groups == s.h; }

/* The number of a chunk of a sequence and head. */
DEVICE int64_t state_back_at(const state_back_params &p, const state_task &a, int64_t first) {
    return (state_mma_first_chunk(p, a) + first / STATE_MMA_STEPS) * p.all.shape.h + a.head;
}

/* Without the delta rule what steps add is known: the state before each chunk, or its gradient behind it. */
template <class T, int D, bool BACK>
DEVICE void state_back_known(const state_back_params &p, state_back_pass_memory<D, state_mma_input<T>::PARTS> &m,
                             const state_task &a) {
    using Memory = state_back_pass_memory<D, state_mma_input<T>::PARTS>;
    const state_shape &s = p.all.shape;
    const state_rows &key = BACK ? s.q : s.k, &value = BACK ? p.all.dout : s.v;
    const int64_t chunks = (a.steps + STATE_MMA_STEPS - 1) / STATE_MMA_STEPS, end = BACK ? -1 : chunks,
                  by = BACK ? -1 : 1;
    float *const states = BACK ? p.gradients : p.states;
    state_mma_state<D> h;
    h.load(BACK ? p.all.dlast : s.s0, s, a);
    state_back_ahead<T, D> ahead;
    int64_t chunk = BACK ? chunks - 1 : 0;
    if (chunks > 0) ahead.load(p, a, key, value, state_back_at(p, a, chunk * STATE_MMA_STEPS), chunk * STATE_MMA_STEPS);
#pragma unroll 1
    for (; chunk != end; chunk += by) {
        const int64_t next = chunk + by;
        sync_block(); /* nobody reads the chunk before any more */
        ahead.put(m);
        if (next != end)
            ahead.load(p, a, key, value, state_back_at(p, a, next * STATE_MMA_STEPS), next * STATE_MMA_STEPS);
        state_back_keep(h, states + state_back_block(p, state_back_at(p, a, chunk * STATE_MMA_STEPS), a.block, D));
        sync_block();
        state_mma_each_pair([&](int, int, int row, int column) {
            float x, y;
            state_mma_two(m.v, row * Memory::VALUE + column * 2, x, y);
            const float each = BACK ? m.number[STATE_BACK_BEFORE][row] * s.scale
                                    : m.number[STATE_BACK_AFTER][row] * m.number[STATE_BACK_FACTOR][row];
            state_mma_put_pair(m.added, row, column, each * x, each * y);
        });
        sync_block();
        const float decay = m.number[STATE_BACK_BEFORE][STATE_MMA_STEPS - 1];
        h.each([&](float &x, int, int) { x *= decay; });
        state_mma_gain(h, m.k, m.added);
    }
    if (BACK) h.save(p.all.ds0, s, a);
}

/* With the delta rule, forwards. */
template <class T, int D>
DEVICE void state_back_forth(const state_back_params &p, state_back_ruled_memory<D, state_mma_input<T>::PARTS> &m,
                             const state_task &a) {
    using Memory = state_back_ruled_memory<D, state_mma_input<T>::PARTS>;
    const state_shape &s = p.all.shape;
    state_mma_state<D> h;
    h.load(s.s0, s, a);
    state_back_ahead<T, D> ahead;
    if (a.steps > 0) ahead.load(p, a, s.k, s.v, state_back_at(p, a, 0), 0);
#pragma unroll 1
    for (int64_t first = 0; first < a.steps; first += STATE_MMA_STEPS) {
        const int64_t at = state_back_at(p, a, first), next = first + STATE_MMA_STEPS;
        state_mma_matrix<false> inverse;
        inverse.load(p.inverse + at * STATE_BACK_SQUARE);
        sync_block(); /* nobody reads the chunk before any more */
        state_back_put(h, m.h);
        ahead.put(m);
        state_back_keep(h, p.states + state_back_block(p, at, a.block, D));
        sync_block();
        const float(&before)[STATE_MMA_STEPS] = m.number[STATE_BACK_BEFORE],
              (&rate)[STATE_MMA_STEPS] = m.number[STATE_BACK_RATE];
        state_mma_sums w;
        state_mma_clear(w);
        state_back_read<D>(w, m.k, m.h);
        state_mma_each_pair([&](int c, int e, int row, int column) {
            float x, y;
            state_mma_two(m.v, row * Memory::VALUE + column * 2, x, y);
            w[c][e] = fused(-before[row], w[c][e], x), w[c][e + 1] = fused(-before[row], w[c][e + 1], y);
            state_mma_put_pair(m.u, row, column, rate[row] * w[c][e], rate[row] * w[c][e + 1]);
        });
        sync_block();
        inverse.multiply(w, m.u);
        if (next < a.steps) ahead.load(p, a, s.k, s.v, state_back_at(p, a, next), next);
        float *const left = p.left + state_back_block(p, at, a.block, STATE_MMA_STEPS);
        state_mma_each_pair([&](int c, int e, int row, int column) {
            const float x = w[c][e], y = w[c][e + 1], by = m.number[STATE_BACK_AFTER][row] * rate[row];
            store_words(left + row * STATE_MMA_WIDTH + column, bits_of_float(x), bits_of_float(y));
            state_mma_put_pair(m.added, row, column, by * x, by * y);
        });
        sync_block();
        const float decay = before[STATE_MMA_STEPS - 1];
        h.each([&](float &x, int, int) { x *= decay; });
        state_mma_gain(h, m.k, m.added);
    }
}

/* Two elements of a row of gradients of v, of which there are `columns` from the first on. */
template <class T>
DEVICE void state_back_write(const state_back_params &p, typename T::bits *to, int64_t columns, float x, float y) {
    if (p.wide && columns > 1) {
        *(uint32_t *)to = T::pair(x, y);
        return;
    }
    if (columns > 0) to[0] = T::put(x);
    if (columns > 1) to[1] = T::put(y);
}

/* And back. */
template <class T, int D>
DEVICE void state_back_home(const state_back_params &p, state_back_ruled_memory<D, state_mma_input<T>::PARTS> &m,
                            const state_task &a) {
    const state_shape &s = p.all.shape;
    state_mma_state<D> h;
    h.load(p.all.dlast, s, a);
    const int64_t last = a.steps > 0 ? (a.steps - 1) / STATE_MMA_STEPS * STATE_MMA_STEPS : -1;
    state_back_ahead<T, D> ahead;
    state_mma_rows<T, D> q;
    const auto load = [&](int64_t first) {
        ahead.load(p, a, s.k, p.all.dout, state_back_at(p, a, first), first);
        q.load(s.q, state_at(s.q, a, first, a.group), state_mma_count(a, first), s.d, p.wide);
    };
    if (last >= 0) load(last);
#pragma unroll 1
    for (int64_t first = last; first >= 0; first -= STATE_MMA_STEPS) {
        const int64_t at = state_back_at(p, a, first), next = first - STATE_MMA_STEPS;
        const int n = state_mma_count(a, first);
        sync_block(); /* nobody reads the chunk behind any more */
        state_back_put(h, m.h);
        ahead.put(m);
        q.put(m.q, [](uint32_t, int) {});
        float *const of = p.of + state_back_block(p, at, a.block, STATE_MMA_STEPS);
        state_mma_matrix<true> inverse;
        inverse.load(p.turned + at * STATE_BACK_SQUARE);
        state_mma_sums own;
        state_mma_each_pair([&](int c, int e, int row, int column) {
            const packed<float, 2> x = *(const packed<float, 2> *)(of + row * STATE_MMA_WIDTH + column);
            own[c][e] = x.v[0], own[c][e + 1] = x.v[1];
        });
        state_back_keep(h, p.gradients + state_back_block(p, at, a.block, D));
        sync_block();
        const float(&before)[STATE_MMA_STEPS] = m.number[STATE_BACK_BEFORE],
              (&rate)[STATE_MMA_STEPS] = m.number[STATE_BACK_RATE];
        state_mma_sums u;
        state_mma_clear(u);
        state_back_read<D>(u, m.k, m.h);
        state_mma_each_pair([&](int c, int e, int row, int) {
            const float by = m.number[STATE_BACK_AFTER][row];
            u[c][e] = fused(by, u[c][e], own[c][e]), u[c][e + 1] = fused(by, u[c][e + 1], own[c][e + 1]);
        });
        state_mma_each_pair([&](int c, int e, int row, int column) {
            float x, y;
            state_mma_two(m.v, row * STATE_MMA_ROW(STATE_MMA_WIDTH) + column * 2, x, y);
            const float by = before[row] * s.scale;
            state_mma_put_pair(m.added, row, column, by * x, by * y);
            state_mma_put_pair(m.u, row, column, rate[row] * u[c][e], rate[row] * u[c][e + 1]);
        });
        sync_block();
        inverse.multiply(u, m.u);
        if (next >= 0) load(next);
        const int64_t left = a.block * STATE_MMA_WIDTH;
        typename T::bits *const dv = (typename T::bits *)p.all.dv.data + state_at(p.all.dv, a, first, a.head) + left;
        state_mma_each_pair([&](int c, int e, int row, int column) {
            const float x = u[c][e], y = u[c][e + 1];
            store_words(of + row * STATE_MMA_WIDTH + column, bits_of_float(x), bits_of_float(y));
            if (row < n)
                state_back_write<T>(p, dv + row * p.all.dv.step + column, s.e - left - column, rate[row] * x,
                                    rate[row] * y);
        });
        sync_block(); /* nobody reads differences any more */
        state_mma_each_pair([&](int c, int e, int row, int column) {
            const float by = -before[row] * rate[row];
            state_mma_put_pair(m.u, row, column, by * u[c][e], by * u[c][e + 1]);
        });
        sync_block();
        const float decay = before[STATE_MMA_STEPS - 1];
        h.each([&](float &x, int, int) { x *= decay; });
        state_mma_gain(h, m.q, m.added);
        state_mma_gain(h, m.k, m.u);
    }
    h.save(p.all.ds0, s, a);
}

/* Behind the last sequence gradients are 0, or NaN if offsets are astray. */
DEVICE void state_back_clear(const state_back_params &p, const state_task &a) {
    const float value = a.astray ? not_a_number() : 0.0f;
    const int64_t d = p.all.shape.d;
    const bool direct = state_back_direct(p.all.shape);
    state_clear<STATE_MMA_THREADS, STATE_MMA_WIDTH>(p.all.shape, a, p.all.dv);
    if (a.block > 0) return;
    for (int64_t step = 0; step < a.steps; step++) {
        float *const part = state_part(p.all, a, step), *const sums = state_scalars(p.all, a, step);
        for (int64_t j = thread_index(); j < 2 * d; j += STATE_MMA_THREADS) {
            const state_rows &to = j < d ? p.all.dq : p.all.dk;
            part[j] = value;
            if (direct) state_put(to, state_at(to, a, step, a.group) + j % d, value);
        }
        if (thread_index() < STATE_SUMS) sums[thread_index()] = value;
    }
}

/* The first half of the blocks goes back, for it has more to do. */
template <class T, int D, bool RULED> DEVICE void state_back_pass(const state_back_params &p) {
    enum { INPUTS = state_mma_input<T>::PARTS };
    using Ruled = state_back_ruled_memory<D, INPUTS>;
    using Known = state_back_pass_memory<D, INPUTS>;
    static_assert(sizeof(Ruled) == STATE_BACK_PASS_BYTES(D, INPUTS, true) &&
                      sizeof(Known) == STATE_BACK_PASS_BYTES(D, INPUTS, false),
                  "the host counts on it");
    const int64_t half = block_count() / 2;
    const bool back = block_index() < half;
    const state_task a = state_task_of<STATE_MMA_THREADS>(p.all.shape, block_index() - (back ? 0 : half));
    if (a.room) {
        if (back) state_back_clear(p, a);
    } else if constexpr (RULED) {
        if (back)
            state_back_home<T, D>(p, *(Ruled *)launch_memory(), a);
        else
            state_back_forth<T, D>(p, *(Ruled *)launch_memory(), a);
    } else if (back) {
        state_back_known<T, D, true>(p, *(Known *)launch_memory(), a);
    } else {
        state_back_known<T, D, false>(p, *(Known *)launch_memory(), a);
    }
}

#endif
