/* SPDX-License-Identifier: Apache-2.0 */
/* A warp's sums of a chunk of gradients of queries or keys. */
#ifndef TRINE_CUDA_STATE_BACK_SUMS_H
#define TRINE_CUDA_STATE_BACK_SUMS_H

#include "state_back_pass.h"

/* A warp's sums: 16 rows of steps and a fourth of the rows of a state, or of the other steps. */
template <int D> struct state_back_sums {
    enum { TILES = D / 32 };
    float x[TILES][4];

    static DEVICE int column(int c, int e) {
        return thread_index() / (4 * WARP) * (D / 4) + c * 8 + thread_index() % 4 * 2 + e % 2;
    }
    /* Times a number of each row. */
    DEVICE void scale(float upper, float lower) {
#pragma unroll
        for (int c = 0; c < TILES; c++) x[c][0] *= upper, x[c][1] *= upper, x[c][2] *= lower, x[c][3] *= lower;
    }
    /* += x y, y having the 16 steps from k on in rows. */
    template <int PARTS, int INPUTS, int BYTES>
    DEVICE void add(const uint32_t (&left)[PARTS][4], const char (&right)[INPUTS][BYTES], int k) {
#pragma unroll
        for (int c = 0; c < TILES; c += 2)
#pragma unroll
            for (int j = INPUTS - 1; j >= 0; j--) {
                uint32_t y[4];
                state_mma_right_turned(y, right[j], STATE_MMA_ROW(D), k, column(c, 0) - thread_index() % 4 * 2);
#pragma unroll
                for (int i = PARTS - 1; i >= 0; i--) state_mma_add(x[c], x[c + 1], left[i], y);
            }
    }
    /* To a tensor, where a group has one head; or for the sum over its heads. */
    template <class T>
    DEVICE void write(const state_back_params &p, const state_rows &to, const state_task &a, int64_t first,
                      int n) const {
        const int row = state_mma_place().row;
        typename T::bits *const at = (typename T::bits *)to.data + state_at(to, a, first + row, a.group) + column(0, 0);
#pragma unroll
        for (int e = 0; e < 4; e += 2)
#pragma unroll
            for (int c = 0; c < TILES; c++)
                if (row + e / 2 * 8 < n)
                    state_back_write<T>(p, at + e / 2 * 8 * to.step + c * 8, p.all.shape.d - column(c, 0), x[c][e],
                                        x[c][e + 1]);
    }
    DEVICE void write(float *to, const state_shape &s, int64_t slots, int n) const {
        const int row = state_mma_place().row;
        const int64_t step = s.h * slots * 2 * s.d;
        to += row * step + column(0, 0);
#pragma unroll
        for (int e = 0; e < 4; e += 2)
#pragma unroll
            for (int c = 0; c < TILES; c++) {
                if (row + e / 2 * 8 >= n) continue;
                float *const at = to + e / 2 * 8 * step + c * 8;
                const int64_t left = s.d - column(c, 0);
                if (s.d % 2 == 0 && left > 1) {
                    store_words(at, bits_of_float(x[c][e]), bits_of_float(x[c][e + 1]));
                    continue;
                }
                if (left > 0) at[0] = x[c][e];
                if (left > 1) at[1] = x[c][e + 1];
            }
    }
    /* The products of rows with those of an input, summed up over the warp's columns. */
    template <int INPUTS, int BYTES> DEVICE void dots(float (&to)[STATE_MMA_STEPS], const char (&y)[INPUTS][BYTES]) {
        const int row = state_mma_place().row;
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            float sum = 0;
#pragma unroll
            for (int c = 0; c < TILES; c++) {
                float a, b;
                state_mma_two(y, (row + e / 2 * 8) * STATE_MMA_ROW(D) + column(c, 0) * 2, a, b);
                sum = fused(x[c][e], a, fused(x[c][e + 1], b, sum));
            }
            sum += shuffle_xor(sum, 1);
            sum += shuffle_xor(sum, 2);
            if (thread_index() % 4 == 0) to[row + e / 2 * 8] = sum;
        }
    }
};

/* 16 by 16 products of two inputs' rows. */
template <int D, int INPUTS, int BYTES>
DEVICE void state_back_scores(float (&score)[2][4], const char (&left)[INPUTS][BYTES],
                              const char (&right)[INPUTS][BYTES]) {
    const state_mma_place place;
#pragma unroll 2
    for (int k = 0; k < D; k += 16) {
        uint32_t x[INPUTS][4];
#pragma unroll
        for (int i = 0; i < INPUTS; i++) state_mma_left(x[i], left[i], STATE_MMA_ROW(D), place.warp * 16, k);
#pragma unroll
        for (int j = 0; j < INPUTS; j++) {
            uint32_t y[4];
            state_mma_right(y, right[j], STATE_MMA_ROW(D), k, place.share);
#pragma unroll
            for (int i = 0; i < INPUTS; i++) state_mma_add(score[0], score[1], x[i], y);
        }
    }
}

#endif
