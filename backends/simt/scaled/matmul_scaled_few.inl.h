/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on devices, of few rows of a: 32 threads have a row of b, each a run of 16 elements at a time.
 *
 * NOTES. Floor: b once. Sums are of runs, which are scaled on their own. */
#ifndef TRINE_SIMT_MATMUL_SCALED_FEW_INL_H
#define TRINE_SIMT_MATMUL_SCALED_FEW_INL_H

#include "matmul_scaled_values.inl.h"

/* Sums of a few rows. */
template <int R> struct scaled_sums {
    float of[R];
    DEVICE friend scaled_sums operator+(scaled_sums a, const scaled_sums &b) {
#pragma unroll
        for (int r = 0; r < R; r++) a.of[r] += b.of[r];
        return a;
    }
};

template <int R> DEVICE void scaled_few(const scaled_params &p) {
    const int lane = thread_index() % SCALED_TEAM;
    const int64_t first = block_index() % p.down * R,
                  own = block_index() / p.down * (SIMT_THREADS / SCALED_TEAM) + thread_index() / SCALED_TEAM,
                  j = own < p.b.rows ? own : p.b.rows - 1;
    const uint8_t *const b = p.b.data + j * p.b.row, *a[R];
    const int64_t b_line = scaled_line(p.b, j);
    int64_t a_line[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int64_t i = first + r < p.a.rows ? first + r : p.a.rows - 1;
        a[r] = p.a.data + i * p.a.row;
        a_line[r] = scaled_line(p.a, i);
    }
    scaled_sums<R> sums = {};
#pragma unroll 2
    for (int32_t at = lane * SCALED_RUN; at < p.k; at += SCALED_TEAM * SCALED_RUN) {
        float w[SCALED_RUN], x[SCALED_RUN];
        scaled_values(w, p.b, scaled_fetch<SCALED_RUN>(p.b, b, at, p.k));
        const float scale = scaled_scale(p.b, b_line, at);
#pragma unroll
        for (int r = 0; r < R; r++) {
            float dot = 0;
            scaled_values(x, p.a, scaled_fetch<SCALED_RUN>(p.a, a[r], at, p.k));
#pragma unroll
            for (int i = 0; i < SCALED_RUN; i++) dot = fused(x[i], w[i], dot);
            sums.of[r] = fused(dot, scale * scaled_scale(p.a, a_line[r], at), sums.of[r]);
        }
    }
    sums = group_sum<SCALED_TEAM>(sums);
#pragma unroll
    for (int r = 0; r < R; r++)
        if (lane == r && own < p.b.rows && first + r < p.a.rows) scaled_store(p, first + r, j, sums.of[r]);
}

ENTRY(matmul_scaled_few_1, SIMT_THREADS, scaled_params) { scaled_few<1>(p); }
ENTRY(matmul_scaled_few_4, SIMT_THREADS, scaled_params) { scaled_few<SCALED_SIDE>(p); }

#endif
