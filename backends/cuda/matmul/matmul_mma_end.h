/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of products by mma.sync: from the sums of warps to d. Of 16 rows and 8 columns a thread has columns l % 4 *
 * 2 and the next of rows l / 4 and 8 below. */
#ifndef TRINE_CUDA_MATMUL_MMA_END_H
#define TRINE_CUDA_MATMUL_MMA_END_H

#include "matmul_mma_feed.h"

/* A tile that is in shared memory to d, so that neighbouring threads write neighbours. */
template <int ROWS, int COLUMNS, int THREADS, class Sum>
DEVICE void matmul_tile_end(const matmul_params &p, const matmul_place &at, const Sum *tile, int pitch) {
    enum { UNITS = COLUMNS / 4, STEP = THREADS / UNITS, Q = ROWS < 4 * STEP ? ROWS / STEP : 4 };
    const int row = thread_index() / UNITS, column = thread_index() % UNITS * 4;
    sync_block();
#pragma unroll 1
    for (int i = 0; i < ROWS; i += Q * STEP) {
        Sum four[Q][4];
#pragma unroll
        for (int q = 0; q < Q; q++) matmul_take(four[q], tile + (i + q * STEP + row) * pitch + column);
        matmul_finish(four, p.to, { at.result, at.row + i + row, STEP, at.column + column, p.m, p.n });
    }
}

/* Any end, through shared memory. */
template <class Shape, class Sum>
DEVICE void matmul_mma_any_end(const matmul_params &p, const matmul_place &at,
                               const Sum (&sum)[Shape::M][2 * Shape::N][4], char *memory) {
    enum { PITCH = Shape::COLUMNS + 8 };
    static_assert(Shape::ROWS * PITCH * sizeof(Sum) <= Shape::STAGES * Shape::STAGE);
    Sum *const tile = (Sum *)memory;
    const int lane = thread_index() % WARP;
#pragma unroll
    for (int i = 0; i < Shape::M; i++)
#pragma unroll
        for (int j = 0; j < 2 * Shape::N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                tile[(Shape::row(i) + lane / 4 + e / 2 * 8) * PITCH + Shape::column(j / 2) + j % 2 * 8 + lane % 4 * 2 +
                     e % 2] = sum[i][j][e];
    matmul_tile_end<Shape::ROWS, Shape::COLUMNS, Shape::THREADS>(p, at, tile, PITCH);
}

/* Is alpha all that the sums of a tile meet, which is wholly in d? Questions asked for each row took 9 % of a product's
 * time. */
template <class Shape> DEVICE bool matmul_mma_is_plain(const matmul_params &p, const matmul_place &at) {
    const bool inside = p.to.wide && p.m - at.row >= Shape::ROWS && p.n - at.column >= Shape::COLUMNS;
    return inside && p.to.plain && !p.to.rows.data && !p.to.columns.data;
}

/* A plain end leaves shared memory alone. Of two blocks of 8 columns an even lane gets four of the first, an odd one of
 * the second. In 32 bits: 64 bytes of a row in all. */
template <class Shape, class Sum>
DEVICE void matmul_mma_end_32(const matmul_params &p, const matmul_place &at,
                              const Sum (&sum)[Shape::M][2 * Shape::N][4]) {
    const int lane = thread_index() % WARP, odd = lane % 2;
    Sum *const d = (Sum *)p.to.d + at.result * p.to.d_batch + (at.row + lane / 4) * p.to.d_row + at.column + odd * 8 +
                   lane / 2 % 2 * 4;
#pragma unroll
    for (int i = 0; i < 2 * Shape::M; i++) {
        Sum *const to = d + (Shape::row(i / 2) + i % 2 * 8) * p.to.d_row;
#pragma unroll
        for (int j = 0; j < 2 * Shape::N; j += 2) {
            uint32_t own[2], other[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const Sum x = matmul_times(p.to.alpha, sum[i / 2][j][i % 2 * 2 + e]),
                          y = matmul_times(p.to.alpha, sum[i / 2][j + 1][i % 2 * 2 + e]);
                const Sum stays = odd ? y : x, comes = shuffle_xor(odd ? x : y, 1);
                __builtin_memcpy(&own[e], &stays, sizeof stays);
                __builtin_memcpy(&other[e], &comes, sizeof comes);
            }
            store_words(to + Shape::column(j / 2), odd ? other[0] : own[0], odd ? other[1] : own[1],
                        odd ? own[0] : other[0], odd ? own[1] : other[1]);
        }
    }
}

/* In 16 bits: 32 bytes of a row. */
template <class Out, class Shape>
DEVICE void matmul_mma_end_16(const matmul_params &p, const matmul_place &at,
                              const float (&sum)[Shape::M][2 * Shape::N][4]) {
    const int lane = thread_index() % WARP, odd = lane % 2;
    uint16_t *const d = (uint16_t *)p.to.d + at.result * p.to.d_batch + (at.row + lane / 4) * p.to.d_row + at.column +
                        odd * 8 + lane / 2 % 2 * 4;
#pragma unroll
    for (int i = 0; i < 2 * Shape::M; i++) {
        uint16_t *const to = d + (Shape::row(i / 2) + i % 2 * 8) * p.to.d_row;
#pragma unroll
        for (int j = 0; j < 2 * Shape::N; j += 2) {
            const float *const first = &sum[i / 2][j][i % 2 * 2], *const second = &sum[i / 2][j + 1][i % 2 * 2];
            const uint32_t x = Out::pair(p.to.alpha * first[0], p.to.alpha * first[1]),
                           y = Out::pair(p.to.alpha * second[0], p.to.alpha * second[1]);
            const uint32_t other = shuffle_xor(odd ? x : y, 1);
            store_words(to + Shape::column(j / 2), odd ? other : x, odd ? y : other);
        }
    }
}

template <class T, class Shape, class Sum>
DEVICE void matmul_mma_plain_end(const matmul_params &p, const matmul_place &at,
                                 const Sum (&sum)[Shape::M][2 * Shape::N][4]) {
    if constexpr (matmul_mma_type<T>::IN_BF16)
        if (p.to.type == MATMUL_BF16) return matmul_mma_end_16<bf16, Shape>(p, at, sum);
    if constexpr (matmul_mma_type<T>::IN_F16)
        if (p.to.type == MATMUL_F16) return matmul_mma_end_16<f16, Shape>(p, at, sum);
    matmul_mma_end_32<Shape>(p, at, sum);
}

#endif
