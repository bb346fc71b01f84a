/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by the tensor cores of sm_80 and later: bf16, f16, i8, and f32 cut to tf32.
 *
 * Blocks stay and take tile after tile. A tile is 128 x 256 by 8 warps of 64 x 64, or smaller where those are few.
 * Steps of 128 bytes of k are copied to a ring of three stages ahead of their use.
 *
 * NOTES, of one H200. Floors: 2 m n k flops over the rate of mma.sync, about 62 % of wgmma's; the operands once; and a
 * tile's lanes of both for each tile. With 64 x 32 to a warp, 6 matrices read for 16 products, shared memory was the
 * limit: 305 TFLOP/s at 4096. With 64 x 64, 8 for 32, it was 382, each read waited for; read one step ahead, also past
 * the barrier, 460, where 450 were predicted. Copies put between products one at a time take 3 accesses to shared
 * memory each instead of 1, and cost 6 %. Reads between products instead of before them cost 2 % (bf16), so does going
 * through b to and fro. */
#ifndef TRINE_CUDA_MATMUL_MMA_H
#define TRINE_CUDA_MATMUL_MMA_H

#include "matmul_mma_end.h"
#include "matmul_mma_feed.h"

/* Where a thread reads its row of the matrices of a warp's 16 lanes and 32 bytes of k, the warp being one of WARPS that
 * share the operand in turns of 16 lanes. The registers of a are in the order (k 0, lanes 0-7), (k 0, lanes 8-15), (k
 * 1, lanes 0-7), ...; those of b have k run first. Steps of lanes and of k flip bits of the piece or add rows. */
template <bool ACROSS, int WARPS> struct matmul_mma_view {
    static_assert(!ACROSS || 4 % WARPS == 0);
    int base;

    DEVICE matmul_mma_view(int warp, bool is_b) {
        const int index = thread_index() % WARP / 8, row = thread_index() % 8, half = is_b ? index / 2 : index % 2,
                  k = is_b ? index % 2 : index / 2;
        base = ACROSS ? matmul_swizzled(k * 8 + row, warp * 2 + half) : matmul_swizzled(warp * 16 + half * 8 + row, k);
    }
    DEVICE void load(uint32_t (&r)[4], const char *stage, int turn, int slice) const {
        const int lanes = turn * WARPS * 16;
        if constexpr (ACROSS)
            load_matrices<true>(r, stage + (base ^ lanes % 64 << 1) + lanes / 64 * 8192 + slice * 2048);
        else
            load_matrices<false>(r, stage + (base ^ slice << 5) + lanes * 128);
    }
};

/* What a warp multiplies: 32 bytes of k of its lanes of either operand. */
template <class Shape, bool A_ACROSS, bool B_ACROSS> struct matmul_mma_slice {
    uint32_t a[Shape::M][4], b[Shape::N][4];

    DEVICE void load(const char *stage, int slice, const matmul_mma_view<A_ACROSS, Shape::DOWN> &left,
                     const matmul_mma_view<B_ACROSS, Shape::RIGHT> &right) {
#pragma unroll
        for (int i = 0; i < Shape::N; i++) right.load(b[i], stage + Shape::ROWS * 128, i, slice);
#pragma unroll
        for (int i = 0; i < Shape::M; i++) left.load(a[i], stage, i, slice);
    }
    template <class T, class Sum> DEVICE void multiply(T type, Sum (&sum)[Shape::M][2 * Shape::N][4]) const {
#pragma unroll
        for (int i = 0; i < Shape::M; i++)
#pragma unroll
            for (int j = 0; j < 2 * Shape::N; j++)
                warp_multiply(type, sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
};

/* A tile's steps, the first of which are in flight: the ring's other stages are filled as they become free, a third of
 * a step at a time, since all of it at once would keep reads from shared memory waiting. */
template <class T, class Shape, bool A_ACROSS, bool B_ACROSS, class Sum>
DEVICE void matmul_mma_steps(const matmul_params &p, matmul_mma_feed<T, Shape, A_ACROSS, B_ACROSS> &feed, char *memory,
                             Sum (&sum)[Shape::M][2 * Shape::N][4]) {
    enum { STAGES = Shape::STAGES, SLICES = 4, THIRD = (feed.COUNT + 2) / 3 };
    const matmul_mma_view<A_ACROSS, Shape::DOWN> left(thread_index() / WARP / Shape::RIGHT, false);
    const matmul_mma_view<B_ACROSS, Shape::RIGHT> right(thread_index() / WARP % Shape::RIGHT, true);
    matmul_mma_slice<Shape, A_ACROSS, B_ACROSS> slice[2]; /* this one, and the next, prefetched from shared memory */
    char *from = memory, *to = memory + (STAGES - 1) * Shape::STAGE;
    copy_wait<STAGES - 2>();
    sync_block();
    slice[0].load(from, 0, left, right);
#pragma unroll 1
    for (int step = 0; step < feed.steps; step++) {
        char *const next = from < memory + (STAGES - 1) * Shape::STAGE ? from + Shape::STAGE : memory;
#pragma unroll
        for (int i = 0; i < SLICES; i++) {
            const bool last = i == SLICES - 1;
            if (last) {
                copy_wait<STAGES - 2>();
                sync_block(); /* the next step is there, and nobody reads this one any more */
            }
            slice[(i + 1) % 2].load(last ? next : from, (i + 1) % SLICES, left, right);
            slice[i % 2].multiply(T(), sum);
#pragma unroll
            for (int piece = i * THIRD; piece < (i + 1) * THIRD && piece < feed.COUNT; piece++) feed.copy(p, to, piece);
        }
        to = from, from = next;
    }
}

/* The sums of a tile that is all alpha meets go to d while the next one's first steps are on their way. */
template <class T, class Shape, bool A_ACROSS, bool B_ACROSS> DEVICE void matmul_mma(const matmul_params &p) {
    using Sum = typename matmul_mma_type<T>::sum;
    char *const memory = launch_memory();
    matmul_mma_feed<T, Shape, A_ACROSS, B_ACROSS> feed;
    Sum sum[Shape::M][2 * Shape::N][4];
    const auto place_of = [&](int64_t tile) { return matmul_place_of(p, Shape::ROWS, Shape::COLUMNS, tile); };
#pragma unroll 1
    for (int64_t tile = block_index();; tile += block_count()) {
        if (tile < p.tiles) {
            feed.begin(p, place_of(tile));
#pragma unroll 1
            for (int stage = 0; stage < Shape::STAGES - 1; stage++)
#pragma unroll
                for (int i = 0; i < feed.COUNT; i++) feed.copy(p, memory + stage * Shape::STAGE, i);
        }
        if (tile != block_index()) {
            const matmul_place before = place_of(tile - block_count());
            if (matmul_mma_is_plain<Shape>(p, before)) matmul_mma_plain_end<T, Shape>(p, before, sum);
        }
        if (tile >= p.tiles) break;
#pragma unroll
        for (int i = 0; i < Shape::M * Shape::N * 8; i++) sum[i / 8 / Shape::N][i / 4 % (2 * Shape::N)][i % 4] = Sum(0);
        matmul_mma_steps(p, feed, memory, sum);
        sync_block(); /* nobody reads the ring any more */
        const matmul_place at = place_of(tile);
        if (matmul_mma_is_plain<Shape>(p, at)) continue;
        matmul_mma_any_end<Shape>(p, at, sum, memory);
        sync_block();
    }
}

#endif
