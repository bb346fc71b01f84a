/* SPDX-License-Identifier: Apache-2.0 */
/* max_plus_matmul on devices: a block has a square of d, a thread 4 x 4 of its elements, each compared in the order of
 * k.
 *
 * NOTES. Floor: an addition and a comparison for each sum; of i32 sm_90 has both in one instruction. */
#include "dynamic.h"
#include "backends/simt/core/simt.h"

/* An element's type: its sum, and what nothing is beyond. */
template <class T> struct tropical_float {
    using value = T;
    static DEVICE T sum(T x, T y) { return x + y; }
    static DEVICE bool after(T x, T y) { return x != x && y == y; }
    static DEVICE T farthest(bool minimum) { return minimum ? (T)infinity() : -(T)infinity(); }
};
struct tropical_i32 {
    using value = int32_t;
    static DEVICE int32_t sum(int32_t x, int32_t y) { return (int32_t)((uint32_t)x + (uint32_t)y); }
    static DEVICE bool after(int32_t, int32_t) { return false; }
    static DEVICE int32_t farthest(bool minimum) { return minimum ? INT32_MAX : INT32_MIN; }
};

template <class T, bool MINIMUM, bool INDICES> DEVICE void max_plus(const max_plus_params &p) {
    using value = typename T::value;
    enum { SIDE = MAX_PLUS_SIDE, STEP = MAX_PLUS_STEP, SQUARE = 16, EACH = SIDE / SQUARE, THREADS = SQUARE * SQUARE };
    static_assert(THREADS == (int)SIMT_THREADS, "a thread has its part of the square");
    SHARED value left[STEP][SIDE + 1], right[STEP][SIDE + 1];
    const int64_t tiles = p.down * p.across, batch = block_index() / tiles, tile = block_index() - batch * tiles,
                  row = tile / p.across * SIDE, column = tile % p.across * SIDE;
    const value *const a = (const value *)p.a + batch * p.a_batch, *const b = (const value *)p.b + batch * p.b_batch;
    const int thread = thread_index(), down = thread / SQUARE, across = thread % SQUARE;
    value best[EACH][EACH];
    int64_t found[EACH][EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int64_t y = row + down + i * SQUARE, x = column + across + j * SQUARE;
            const bool has = p.c.data && y < p.m && x < p.n;
            best[i][j] = has ? ((const value *)p.c.data)[batch * p.c.batch + y * p.c.row + x] : T::farthest(MINIMUM);
            found[i][j] = -1;
        }
    for (int64_t at = 0; at < p.k; at += STEP) {
        sync_block();
#pragma unroll
        for (int e = 0; e < SIDE * STEP / THREADS; e++) {
            const int number = thread + e * THREADS;
            /* neighbours in memory for neighbours among threads */
            const int i = p.a_along == 1 ? number / STEP : number % SIDE,
                      q = p.a_along == 1 ? number % STEP : number / SIDE;
            const bool in = row + i < p.m && at + q < p.k;
            left[q][i] = in ? a[(row + i) * p.a_row + (at + q) * p.a_along] : (value)0;
            const int j = p.b_column == 1 ? number % SIDE : number / STEP,
                      r = p.b_column == 1 ? number / SIDE : number % STEP;
            const bool inside = column + j < p.n && at + r < p.k;
            right[r][j] = inside ? b[(at + r) * p.b_along + (column + j) * p.b_column] : (value)0;
        }
        sync_block();
        const int steps = p.k - at < STEP ? (int)(p.k - at) : (int)STEP;
        for (int q = 0; q < steps; q++) {
            value u[EACH], v[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++) u[i] = left[q][down + i * SQUARE];
#pragma unroll
            for (int j = 0; j < EACH; j++) v[j] = right[q][across + j * SQUARE];
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++) {
                    const value sum = T::sum(u[i], v[j]);
                    const bool better = (MINIMUM ? sum < best[i][j] : sum > best[i][j]) || T::after(sum, best[i][j]);
                    if (better) best[i][j] = sum;
                    if (INDICES && better) found[i][j] = at + q;
                }
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int64_t y = row + down + i * SQUARE, x = column + across + j * SQUARE;
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
