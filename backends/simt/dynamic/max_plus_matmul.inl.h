/* SPDX-License-Identifier: Apache-2.0 */
/* max_plus_matmul on devices: a block has a square of d, a thread 4 x 4 of its elements, each compared in the order of
 * k. Which of equal sums came first does not matter while none is a NaN and none of the zeros is negative: then one
 * instruction takes the larger.
 *
 * NOTES. Floor: an addition and a comparison for each sum; of i32 sm_90 has both in one instruction. */
#include <count.h>

#include "dynamic.h"
#include "backends/simt/core/simt.h"

/* An element's type: its sum, and what nothing is beyond. */
template <class T> struct tropical_float {
    using value = T;
    static constexpr bool WILD = true;
    static DEVICE T sum(T x, T y) { return x + y; }
    static DEVICE bool wild(T x) { return !(x - x == 0) || (x == 0 && bits_of_float((float)x) != 0); }
    static DEVICE float beyond(float x, float y, bool minimum) { return minimum ? -larger(-x, -y) : larger(x, y); }
    static DEVICE double beyond(double x, double y, bool minimum) { return (minimum ? x < y : x > y) ? x : y; }
    static DEVICE bool after(T x, T y) { return x != x && y == y; }
    static DEVICE T farthest(bool minimum) { return minimum ? (T)infinity() : -(T)infinity(); }
};
struct tropical_i32 {
    using value = int32_t;
    static constexpr bool WILD = false;
    static DEVICE bool wild(int32_t) { return false; }
    static DEVICE int32_t beyond(int32_t x, int32_t y, bool minimum) { return (minimum ? x < y : x > y) ? x : y; }
    static DEVICE int32_t sum(int32_t x, int32_t y) { return (int32_t)((uint32_t)x + (uint32_t)y); }
    static DEVICE bool after(int32_t, int32_t) { return false; }
    static DEVICE int32_t farthest(bool minimum) { return minimum ? INT32_MAX : INT32_MIN; }
};

enum { SIDE = MAX_PLUS_SIDE, STEP = MAX_PLUS_STEP, SQUARE = 16, EACH = SIDE / SQUARE, THREADS = SQUARE * SQUARE };
static_assert(THREADS == (int)SIMT_THREADS, "a thread has its part of the square");

enum { LINE = SIDE + EACH, PIECES = SIDE * STEP / THREADS };

/* A thread's part of a step of one matrix, `side` of a square's lines along k; along: neighbouring threads are along k
 * too. */
template <class Value> struct max_plus_piece {
    const Value *from;
    int64_t step, line, next; /* strides along k, of a line, and from one element of the thread to its next */
    int q, i, next_q, next_i; /* the first element's place, and the way to the next */
    int64_t lines;            /* from the square's first line on */

    DEVICE max_plus_piece(const Value *matrix, int64_t first, int64_t count, int64_t line_by, int64_t step_by,
                          bool along, int thread)
        : step(step_by), line(line_by), lines(count - first) {
        i = along ? thread / STEP : thread % SIDE, q = along ? thread % STEP : thread / SIDE;
        next_i = along ? THREADS / STEP : 0, next_q = along ? 0 : THREADS / SIDE;
        next = next_i * line + next_q * step;
        from = matrix + (first + i) * line + q * step;
    }
    DEVICE void load(Value (&x)[PIECES], int64_t at, int64_t k) const {
#pragma unroll
        for (int e = 0; e < PIECES; e++)
            x[e] = i + e * next_i < lines && at + q + e * next_q < k ? from[at * step + e * next] : (Value)0;
    }
    DEVICE void put(const Value (&x)[PIECES], Value (&to)[STEP][LINE]) const {
#pragma unroll
        for (int e = 0; e < PIECES; e++) to[q + e * next_q][i + e * next_i] = x[e];
    }
};

/* The next `steps` sums of a thread's elements, of which `at` is the first; PLAIN: no NaN and no negative zero. */
template <class T, bool MINIMUM, bool INDICES, bool PLAIN, class Value>
DEVICE void max_plus_steps(Value (&best)[EACH][EACH], int64_t (&found)[EACH][EACH], const Value *left,
                           const Value *right, int line, int64_t at, int steps) {
#pragma unroll 4
    for (int q = 0; q < steps; q++) {
        const packed<Value, EACH> u = *(const packed<Value, EACH> *)(left + q * line),
                                  v = *(const packed<Value, EACH> *)(right + q * line);
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                const Value sum = T::sum(u.v[i], v.v[j]);
                if (PLAIN && !INDICES) {
                    best[i][j] = T::beyond(sum, best[i][j], MINIMUM);
                    continue;
                }
                const bool better =
                    (MINIMUM ? sum < best[i][j] : sum > best[i][j]) || (!PLAIN && T::after(sum, best[i][j]));
                if (better) best[i][j] = sum;
                if (INDICES && better) found[i][j] = at + q;
            }
    }
}

template <class T, bool MINIMUM, bool INDICES> DEVICE void max_plus(const max_plus_params &p) {
    using value = typename T::value;
    alignas(16) SHARED value left[STEP][LINE];
    alignas(16) SHARED value right[STEP][LINE];
    SHARED uint32_t wild; /* threads that have had a number that is not plain */
    const int64_t tiles = p.down * p.across, batch = block_index() / tiles, tile = block_index() - batch * tiles,
                  row = tile / p.across * SIDE, column = tile % p.across * SIDE;
    const value *const a = (const value *)p.a + batch * p.a_batch, *const b = (const value *)p.b + batch * p.b_batch;
    const int thread = thread_index(), down = thread / SQUARE * EACH, across = thread % SQUARE * EACH;
    value best[EACH][EACH];
    int64_t found[EACH][EACH];
    bool rough = false, told = false;
    if (thread == 0) wild = 0;
    sync_block();
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int64_t y = row + down + i, x = column + across + j;
            const bool has = p.c.data && y < p.m && x < p.n;
            best[i][j] = has ? ((const value *)p.c.data)[batch * p.c.batch + y * p.c.row + x] : T::farthest(MINIMUM);
            rough |= has && T::wild(best[i][j]);
            found[i][j] = -1;
        }
    /* neighbours in memory for neighbours among threads */
    const bool a_rows = p.a_along == 1, b_rows = p.b_column == 1;
    const max_plus_piece<value> first(a, row, p.m, p.a_row, p.a_along, a_rows, thread),
        second(b, column, p.n, p.b_column, p.b_along, !b_rows, thread);
    value x[PIECES], y[PIECES];
    first.load(x, 0, p.k), second.load(y, 0, p.k);
    for (int64_t at = 0; at < p.k; at += STEP) {
        sync_block();
        first.put(x, left), second.put(y, right);
#pragma unroll
        for (int e = 0; e < PIECES; e++) rough |= T::wild(x[e]) || T::wild(y[e]);
        if (T::WILD && rough && !told) add_shared(&wild, 1), told = true;
        sync_block();
        first.load(x, at + STEP, p.k), second.load(y, at + STEP, p.k);
        const int steps = p.k - at < STEP ? (int)(p.k - at) : (int)STEP;
        if (T::WILD && wild)
            max_plus_steps<T, MINIMUM, INDICES, false>(best, found, left[0] + down, right[0] + across, LINE, at, steps);
        else
            max_plus_steps<T, MINIMUM, INDICES, true>(best, found, left[0] + down, right[0] + across, LINE, at, steps);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int64_t y = row + down + i, x = column + across + j;
            if (y >= p.m || x >= p.n) continue;
            ((value *)p.d.data)[batch * p.d.batch + y * p.d.row + x] = best[i][j];
            if (INDICES) ((int64_t *)p.indices.data)[batch * p.indices.batch + y * p.indices.row + x] = found[i][j];
        }
}

#define MAX_PLUS(type, T) \
    ENTRY(max_plus_matmul_##type##_1, SIMT_THREADS, max_plus_params) { max_plus<T, false, false>(p); } \
    ENTRY(max_plus_matmul_##type##_2, SIMT_THREADS, max_plus_params) { max_plus<T, true, false>(p); } \
    ENTRY(max_plus_matmul_##type##_3, SIMT_THREADS, max_plus_params) { max_plus<T, false, true>(p); } \
    ENTRY(max_plus_matmul_##type##_4, SIMT_THREADS, max_plus_params) { max_plus<T, true, true>(p); }
MAX_PLUS(f32, tropical_float<float>)
MAX_PLUS(f64, tropical_float<double>)
MAX_PLUS(i32, tropical_i32)
