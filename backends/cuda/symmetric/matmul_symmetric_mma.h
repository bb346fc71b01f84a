/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric by the tensor cores of sm_80 and later: matmul's tiles of 128 x 128 by 4 warps (matmul_mma.h), those
 * on the diagonal and below. Sums go to shared memory, then to d, and from there turned to the other side.
 *
 * NOTES. Floor: m (m+1) k flops over the rate of mma.sync. The ends write d once, by warps of 32 neighbours on either
 * side. */
#ifndef TRINE_CUDA_MATMUL_SYMMETRIC_MMA_H
#define TRINE_CUDA_MATMUL_SYMMETRIC_MMA_H

#include "backends/cuda/matmul/matmul_mma.h"
#include "backends/cuda/matmul/matmul_tiles.h"
#include "backends/simt/symmetric/matmul_symmetric_tiles.inl.h"

using symmetric_shape = matmul_mma_shape<SYMMETRIC_SIDE, SYMMETRIC_SIDE, 2, 2, MATMUL_MMA_STAGES>;
enum { SYMMETRIC_PITCH = SYMMETRIC_SIDE + 1 };
static_assert(SYMMETRIC_SIDE * SYMMETRIC_PITCH * 4 <= MATMUL_MMA_BYTES(SYMMETRIC_SIDE, SYMMETRIC_SIDE));

/* All elements of a tile by turns, neighbouring threads having neighbours of a row. */
template <class Each> DEVICE void symmetric_each(Each each) {
#pragma unroll 4
    for (int e = thread_index(); e < SYMMETRIC_SIDE * SYMMETRIC_SIDE; e += symmetric_shape::THREADS)
        each(e / SYMMETRIC_SIDE, e % SYMMETRIC_SIDE);
}

DEVICE void symmetric_mma_end(const matmul_params &p, const symmetric_tile &at, float *tile) {
    const matmul_target &to = p.to;
    sync_block();
    symmetric_each([&](int row, int column) {
        const int64_t i = at.row + row, j = at.column + column;
        if (i >= p.m || j > i) return;
        float x = to.alpha * tile[row * SYMMETRIC_PITCH + column];
        if (to.c) x = fused(to.beta, matmul_load<float>(to.type, to.c, at.batch * to.c_batch + i * to.c_row + j), x);
        tile[row * SYMMETRIC_PITCH + column] = x;
        matmul_store(x, to.type, to.d, at.batch * to.d_batch + i * to.d_row + j);
    });
    sync_block();
    symmetric_each([&](int column, int row) {
        const int64_t i = at.row + row, j = at.column + column;
        if (i >= p.m || j >= i) return;
        matmul_store(tile[row * SYMMETRIC_PITCH + column], to.type, to.d, at.batch * to.d_batch + j * to.d_row + i);
    });
}

template <class T, bool ACROSS> DEVICE void symmetric_mma(const matmul_params &p) {
    using Shape = symmetric_shape;
    char *const memory = launch_memory();
    float *const tile = (float *)memory;
    const symmetric_tile at(p.tiles, SYMMETRIC_SIDE);
    matmul_mma_feed<T, Shape, ACROSS, ACROSS> feed;
    float sum[Shape::M][2 * Shape::N][4] = {};
    feed.begin(p, { at.batch, at.row, at.column, 0, p.k, at.batch });
#pragma unroll 1
    for (int stage = 0; stage < Shape::STAGES - 1; stage++)
#pragma unroll
        for (int i = 0; i < feed.COUNT; i++) feed.copy(p, memory + stage * Shape::STAGE, i);
    matmul_mma_steps(p, feed, memory, sum);
    sync_block(); /* nobody reads the ring any more */
    const int lane = thread_index() % WARP;
#pragma unroll
    for (int i = 0; i < Shape::M; i++)
#pragma unroll
        for (int j = 0; j < 2 * Shape::N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                tile[(Shape::row(i) + lane / 4 + e / 2 * 8) * SYMMETRIC_PITCH + Shape::column(j / 2) + j % 2 * 8 +
                     lane % 4 * 2 + e % 2] = sum[i][j][e];
    symmetric_mma_end(p, at, tile);
}

#endif
