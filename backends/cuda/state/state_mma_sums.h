/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of a chunk's steps by a block's columns, and what is added to them. */
#ifndef TRINE_CUDA_STATE_MMA_SUMS_H
#define TRINE_CUDA_STATE_MMA_SUMS_H

#include "state_mma_chunk.h"

/* A thread's sums of a chunk: 2 rows of its warp's columns. */
using state_mma_sums = float[STATE_MMA_OWN / 8][4];

/* sum += x y for 16 steps from k on: x in parts, y in those of shared memory; what is of no account is left out. */
template <int PARTS, int BYTES>
DEVICE void state_mma_multiply(state_mma_sums &sum, const uint32_t (&x)[STATE_MMA_PARTS][4],
                               const char (&y)[PARTS][BYTES], int k) {
    const int share = state_mma_place().share;
#pragma unroll
    for (int c = 0; c < STATE_MMA_OWN / 8; c += 2)
#pragma unroll
        for (int j = PARTS - 1; j >= 0; j--) {
            uint32_t z[4];
            state_mma_right_turned(z, y[j], STATE_MMA_ROW(STATE_MMA_WIDTH), k, share + c * 8);
#pragma unroll
            for (int i = STATE_MMA_PARTS - 1; i >= 0; i--)
                if (PARTS < STATE_MMA_PARTS || i + j < STATE_MMA_PARTS) state_mma_add(sum[c], sum[c + 1], x[i], z);
        }
}

DEVICE void state_mma_clear(state_mma_sums &x) {
#pragma unroll
    for (int c = 0; c < STATE_MMA_OWN / 8; c++)
#pragma unroll
        for (int e = 0; e < 4; e++) x[c][e] = 0;
}
template <class Each> DEVICE void state_mma_each_pair(Each what) {
    const state_mma_place place;
#pragma unroll
    for (int c = 0; c < STATE_MMA_OWN / 8; c++)
#pragma unroll
        for (int e = 0; e < 4; e += 2) what(c, e, place.row + e / 2 * 8, c * 8 + place.column);
}
DEVICE void state_mma_put_pair(char (&to)[STATE_MMA_PARTS][STATE_MMA_STEPS * STATE_MMA_ROW(STATE_MMA_WIDTH)], int row,
                               int column, float x, float y) {
    uint32_t part[STATE_MMA_PARTS];
    state_mma_split(x, y, part);
#pragma unroll
    for (int j = 0; j < STATE_MMA_PARTS; j++)
        *(uint32_t *)(to[j] + row * STATE_MMA_ROW(STATE_MMA_WIDTH) + column * 2) = part[j];
}

/* A thread's part of a matrix of steps by steps, on its way: of its warp's rows the squares up to the diagonal, or with
 * UPPER from there on. */
template <bool UPPER> struct state_mma_matrix {
    packed<float, 2> x[STATE_MMA_STEPS / 16][4];

    static DEVICE bool has(int k, int warp) { return UPPER ? k >= warp : k <= warp; }
    DEVICE void load(const float *from) {
        const state_mma_place place;
        from += place.row * STATE_MMA_STEPS + place.step;
#pragma unroll
        for (int k = 0; k < STATE_MMA_STEPS / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (has(k, place.warp))
                    x[k][i] = *(const packed<float, 2> *)(from + i % 2 * 8 * STATE_MMA_STEPS + k * 16 + i / 2 * 8);
    }
    /* sum += it times y. */
    template <int PARTS, int BYTES> DEVICE void multiply(state_mma_sums &sum, const char (&y)[PARTS][BYTES]) const {
        const int warp = state_mma_place().warp;
#pragma unroll
        for (int k = 0; k < STATE_MMA_STEPS / 16; k++) {
            if (!has(k, warp)) continue;
            uint32_t parts[STATE_MMA_PARTS][4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t part[STATE_MMA_PARTS];
                state_mma_split(x[k][i].v[0], x[k][i].v[1], part);
#pragma unroll
                for (int j = 0; j < STATE_MMA_PARTS; j++) parts[j][i] = part[j];
            }
            state_mma_multiply(sum, parts, y, k * 16);
        }
    }
};

#endif
