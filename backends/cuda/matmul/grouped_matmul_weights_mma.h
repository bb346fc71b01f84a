/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_weights by the tensor cores of sm_80 and later: a block has 64 rows and 128 columns of a group's
 * result, a warp 32 by 32 of it. Steps of 32 of the group's rows go to a ring of three stages, two ahead of their use;
 * both operands lie across, and are turned as they are loaded.
 *
 * NOTES. Floor: a group's rows of dy once for each tile of columns, those of x once for each tile of rows. Rows of a
 * stage are pieces of 16 bytes whose place is turned by the row's number, so that eight rows' pieces lie in eight
 * banks. */
#ifndef TRINE_CUDA_GROUPED_MATMUL_WEIGHTS_MMA_H
#define TRINE_CUDA_GROUPED_MATMUL_WEIGHTS_MMA_H

#include <tile/mma.h>

#include "backends/simt/matmul/grouped_matmul_weights_tiles.inl.h"

using weights_piece = packed<uint32_t, 4>;
enum {
    WEIGHTS_STAGES = 3,
    WEIGHTS_A_PIECES = WEIGHTS_ROWS / VECTOR, /* of a stage's row of dy, and of x */
    WEIGHTS_B_PIECES = WEIGHTS_COLUMNS / VECTOR,
    WEIGHTS_WARP = 32 /* rows and columns of a warp */
};
static_assert(WEIGHTS_DEPTH * WEIGHTS_A_PIECES == (int)SIMT_THREADS, "a thread copies a piece of dy");

struct weights_stage {
    weights_piece a[WEIGHTS_DEPTH * WEIGHTS_A_PIECES], b[WEIGHTS_DEPTH * WEIGHTS_B_PIECES];
};

DEVICE int weights_turned(int row, int piece, int pieces) { return row * pieces + (piece ^ (row & 7)); }

/* A piece, by a copy that is waited for where memory allows it. */
DEVICE void weights_copy(weights_piece *to, const uint16_t *row, const lane &l) {
    if (l.aligned && (within(l, VECTOR - 1) || !within(l, 0))) {
        copy_bytes<16>(to, within(l, 0) ? row + l.at : row, within(l, 0) ? 16 : 0);
        return;
    }
    uint16_t v[VECTOR];
    load_bits(v, row, l);
    __builtin_memcpy(to, v, sizeof v);
}

/* What a thread copies of the rows from `at` on: a piece of dy, and two of x. */
DEVICE void weights_feed(weights_stage &stage, const weights_params &p, const weights_tile &tile, int32_t at) {
    const int thread = thread_index(), own = thread / WEIGHTS_A_PIECES, piece = thread % WEIGHTS_A_PIECES;
    const bool there = tile.source(p, at + own) >= 0;
    weights_copy(&stage.a[weights_turned(own, piece, WEIGHTS_A_PIECES)],
                 (const uint16_t *)p.dy.data + (there ? at + own : 0) * p.dy.row,
                 { there ? tile.row + piece * VECTOR : p.n, p.n, p.dy_aligned });
#pragma unroll
    for (int i = 0; i < WEIGHTS_DEPTH * WEIGHTS_B_PIECES / SIMT_THREADS; i++) {
        const int number = thread + i * SIMT_THREADS, row = number / WEIGHTS_B_PIECES, part = number % WEIGHTS_B_PIECES;
        const int64_t source = tile.source(p, at + row);
        weights_copy(&stage.b[weights_turned(row, part, WEIGHTS_B_PIECES)],
                     (const uint16_t *)p.x.data + (source < 0 ? 0 : source) * p.x.row,
                     { source < 0 ? p.k : tile.column + part * VECTOR, p.k, p.x_aligned });
    }
}

/* A warp's products of a stage. */
template <class T>
DEVICE void weights_multiply(float (&sum)[2][4][4], const weights_stage &stage, int down, int right) {
    const int index = thread_index() % WARP / 8, row = thread_index() % 8;
#pragma unroll
    for (int k = 0; k < WEIGHTS_DEPTH; k += 16) {
        uint32_t a[2][4], b[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            load_matrices<true>(
                a[i],
                &stage.a[weights_turned(k + index / 2 * 8 + row, down / 8 + i * 2 + index % 2, WEIGHTS_A_PIECES)]);
#pragma unroll
        for (int j = 0; j < 2; j++)
            load_matrices<true>(
                b[j],
                &stage.b[weights_turned(k + index % 2 * 8 + row, right / 8 + j * 2 + index / 2, WEIGHTS_B_PIECES)]);
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                warp_multiply(T(), sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

/* Element `column` of a stage's row of dy. */
template <class T> DEVICE float weights_element(const weights_stage &stage, int row, int column) {
    const uint16_t *const piece = (const uint16_t *)&stage.a[weights_turned(row, column / VECTOR, WEIGHTS_A_PIECES)];
    return T::get(piece[column % VECTOR]);
}

/* Two neighbours of a row of dw. */
template <class O>
DEVICE void weights_put(const weights_params &p, const weights_tile &tile, int64_t row, int64_t column, float low,
                        float high) {
    if (row >= p.n || column >= p.k) return;
    typename O::bits *const to = (typename O::bits *)p.dw.data + tile.group * p.dw.batch + row * p.dw.row + column;
    const packed<typename O::bits, 2> two = { { O::put(low), O::put(high) } };
    if (p.dw_aligned && column + 1 < p.k)
        *(packed<typename O::bits, 2> *)to = two;
    else
        to[0] = two.v[0];
    if (!p.dw_aligned && column + 1 < p.k) to[1] = two.v[1];
}

template <class T, class O> DEVICE void grouped_weights_mma(const weights_params &p) {
    SHARED weights_stage stage[WEIGHTS_STAGES];
    const weights_tile tile(p);
    const int thread = thread_index(), warp = thread / WARP;
    const int down = warp / (WEIGHTS_COLUMNS / WEIGHTS_WARP) * WEIGHTS_WARP,
              right = warp % (WEIGHTS_COLUMNS / WEIGHTS_WARP) * WEIGHTS_WARP;
    const int32_t steps = tile.first < tile.last ? (tile.last - tile.first + WEIGHTS_DEPTH - 1) / WEIGHTS_DEPTH : 0;
    float sum[2][4][4] = {}, row_sum = 0;
#pragma unroll
    for (int s = 0; s < WEIGHTS_STAGES - 1; s++) {
        if (s < steps) weights_feed(stage[s], p, tile, tile.first + s * WEIGHTS_DEPTH);
        copy_commit();
    }
    int now = 0, next = WEIGHTS_STAGES - 1;
    for (int32_t s = 0; s < steps; s++) {
        copy_wait<WEIGHTS_STAGES - 2>();
        sync_block();
        if (s + WEIGHTS_STAGES - 1 < steps)
            weights_feed(stage[next], p, tile, tile.first + (s + WEIGHTS_STAGES - 1) * WEIGHTS_DEPTH);
        copy_commit();
        weights_multiply<T>(sum, stage[now], down, right);
        for (int q = 0; tile.sums(p) && thread < WEIGHTS_ROWS && q < WEIGHTS_DEPTH; q++)
            row_sum += weights_element<T>(stage[now], q, thread);
        now = now + 1 == WEIGHTS_STAGES ? 0 : now + 1, next = next + 1 == WEIGHTS_STAGES ? 0 : next + 1;
    }
    if (tile.sums(p)) tile.template put_sum<O>(p, row_sum);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                weights_put<O>(p, tile, tile.row + down + i * 16 + half * 8 + thread % WARP / 4,
                               tile.column + right + j * 8 + thread % 4 * 2, sum[i][j][2 * half],
                               sum[i][j][2 * half + 1]);
}

#endif
