/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by the tensor cores of sm_80 and later: bf16, f16, i8, and f32 cut to tf32.
 *
 * A block has a tile of 128 x 256 of d, each of its 8 warps 64 x 64. Steps of 128 bytes of k are copied to a ring of three stages ahead of their use. A stage
 * has rows of 128 bytes, in which piece c of 16 bytes of row r is at c ^ r % 8, so that neither copies nor matrices meet in a bank; rows are lanes where k is
 * consecutive, and elements of k where 64 lanes are.
 *
 * NOTES. Floors: 2 m n k flops over the rate of mma.sync, on an H200 about 62 % of wgmma's; the operands once; and, without multicast, a tile's lanes of both
 * for each tile: 85 flops a byte in 16 bits, which the second-level cache delivers at about 5.5 TB/s, 470 TFLOP/s. With 64 x 32 to a warp, 6 matrices read for
 * 16 products, shared memory was the limit: 305 TFLOP/s at 4096. With 64 x 64, 8 for 32, it was 382, each read waited for; read one step ahead, also past the
 * barrier, 460, where 450 were predicted. tf32 reaches 227 by as many bytes. Reads between products instead of before them cost 2 % (bf16), so does going
 * through b to and fro. */
#ifndef TRINE_CUDA_MATMUL_MMA_H
#define TRINE_CUDA_MATMUL_MMA_H

#include <tile/mma.h>

#include "matmul_simt.h"

template <class T> struct matmul_mma_type {
    using sum = float;
    using bits = uint16_t;
    enum { SIZE = 2 };
};
template <> struct matmul_mma_type<tf32> {
    using sum = float;
    using bits = uint32_t;
    enum { SIZE = 4 };
};
template <> struct matmul_mma_type<int8_t> {
    using sum = int32_t;
    using bits = int8_t;
    enum { SIZE = 1 };
};

DEVICE int matmul_swizzled(int row, int piece) { return row * 128 + ((piece ^ row % 8) << 4); }

/* The pieces of a step of an operand's lanes that a thread copies; what lies beyond the operand is 0. Across, rows 0 to 63 are elements of k of one panel of
 * 64 lanes, rows 64 to 127 the same ones of the next, and so on. */
template <class T, int LANES, bool ACROSS> struct matmul_mma_copies {
    enum { SIZE = matmul_mma_type<T>::SIZE, PIECE = 16 / SIZE, COUNT = LANES * 8 / MATMUL_THREADS, ROWS = MATMUL_THREADS / 8 };
    const char *at;
    int64_t next, row_bytes;
    int64_t deep; /* elements of k from the first piece on */
    int rest;     /* lanes from there on */
    int place;
    bool wide, inside; /* aligned; and no lane is beyond the operand */

    DEVICE matmul_mma_copies(const matmul_operand &from, const matmul_place &tile, int64_t first, int64_t end) {
        const int row = thread_index() / 8, piece = thread_index() % 8 * PIECE, lane = ACROSS ? piece : row, along = ACROSS ? row : piece;
        place = matmul_swizzled(row, thread_index() % 8), wide = from.wide;
        inside = wide && end - first >= LANES;
        rest = (int)(end - first < LANES ? end - first : (int64_t)LANES) - lane, deep = tile.depth - along;
        at = (const char *)matmul_at<typename matmul_mma_type<T>::bits>(from, tile, first + lane, along);
        next = ACROSS ? from.along * 128 : 128, row_bytes = (ACROSS ? from.along : from.lane) * SIZE;
    }

    /* Row i * ROWS further on. */
    DEVICE const char *row_at(int row) const { return at + (ACROSS ? row % 64 * row_bytes + row / 64 * 128 : row * row_bytes); }

    /* At the operand's edges, or where it is not aligned. */
    DEVICE void copy_part(char *to) const {
        using Bits = typename matmul_mma_type<T>::bits;
#pragma unroll 1
        for (int row = 0; row < COUNT * ROWS; row += ROWS, to += ROWS * 128) {
            const int lanes = rest - (ACROSS ? row / 64 * 64 : row);
            const int64_t left = deep - (ACROSS ? row % 64 : 0);
            const int most = ACROSS ? lanes : left < PIECE ? (int)left : (int)PIECE, count = left <= 0 || lanes <= 0 ? 0 : most < PIECE ? most : (int)PIECE;
            if (wide) {
                copy_bytes<16>(to, count > 0 ? row_at(row) : nullptr, count * SIZE);
            } else {
                for (int i = 0; i < PIECE; i++) ((Bits *)to)[i] = i < count ? ((const Bits *)row_at(row))[i] : Bits(0);
            }
        }
    }

    DEVICE void copy(char *to) {
        if (inside && deep >= (ACROSS ? 64 : (int)PIECE)) {
#pragma unroll
            for (int row = 0; row < COUNT * ROWS; row += ROWS) copy_bytes<16>(to + place + row * 128, row_at(row), 16);
        } else {
            copy_part(to + place);
        }
        at += next, deep -= 128 / SIZE;
    }
};

/* Where a thread reads its row of the matrices of 16 lanes, from lane `first` on, and 32 bytes of k. The registers of a are in the order (k 0, lanes 0-7), (k
 * 0, lanes 8-15), (k 1, lanes 0-7), ...; those of b have k run first. Steps of lanes and of k flip bits of the piece or add rows. */
template <bool ACROSS> struct matmul_mma_view {
    int base;

    DEVICE matmul_mma_view(int first, bool is_b) {
        const int index = thread_index() % WARP / 8, row = thread_index() % 8, half = is_b ? index / 2 : index % 2, k = is_b ? index % 2 : index / 2;
        base = ACROSS ? first / 64 * 8192 + matmul_swizzled(k * 8 + row, first % 64 / 8 + half) : matmul_swizzled(first + half * 8 + row, k);
    }
    DEVICE void load(uint32_t (&r)[4], const char *stage, int lanes, int step) const {
        load_matrices<ACROSS>(r, stage + (base ^ ((ACROSS ? lanes : step) << 5)) + (ACROSS ? step : lanes) * 2048);
    }
};

/* What a warp multiplies: 64 lanes of either operand, and 32 bytes of k. */
template <bool A_ACROSS, bool B_ACROSS> struct matmul_mma_slice {
    uint32_t a[4][4], b[4][4];

    DEVICE void load(const char *stage, int step, const matmul_mma_view<A_ACROSS> &left, const matmul_mma_view<B_ACROSS> &right) {
#pragma unroll
        for (int i = 0; i < 4; i++) right.load(b[i], stage + MATMUL_SIDE * 128, i, step);
#pragma unroll
        for (int i = 0; i < 4; i++) left.load(a[i], stage, i, step);
    }
    template <class T, class Sum> DEVICE void multiply(T type, Sum (&sum)[4][8][4]) const {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) warp_multiply(type, sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
};

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

template <class Sum> DEVICE void matmul_mma_end(const matmul_params &p, const matmul_place &at, const Sum (&sum)[4][8][4], char *memory) {
    enum { PITCH = MATMUL_MMA_COLUMNS + 8 };
    Sum *const tile = (Sum *)memory;
    const int warp = thread_index() / WARP, lane = thread_index() % WARP, down = warp / 4 * 64 + lane / 4, right = warp % 4 * 64 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) tile[(down + i * 16 + e / 2 * 8) * PITCH + right + j * 8 + e % 2] = sum[i][j][e];
    matmul_tile_end<MATMUL_SIDE, MATMUL_MMA_COLUMNS, MATMUL_THREADS>(p, at, tile, PITCH);
}

template <class T, bool A_ACROSS, bool B_ACROSS> DEVICE void matmul_mma(const matmul_params &p) {
    using Sum = typename matmul_mma_type<T>::sum;
    enum { STEP = 128 / matmul_mma_type<T>::SIZE, A_BYTES = MATMUL_SIDE * 128, STAGE = MATMUL_MMA_BYTES, STAGES = MATMUL_MMA_STAGES, SLICES = 4 };
    char *const memory = launch_memory();
    const matmul_place at = matmul_place_of(p, MATMUL_SIDE, MATMUL_MMA_COLUMNS);
    const int steps = (int)((at.depth + STEP - 1) / STEP), warp = thread_index() / WARP;
    matmul_mma_copies<T, MATMUL_SIDE, A_ACROSS> a(p.a, at, at.row, p.m);
    matmul_mma_copies<T, MATMUL_MMA_COLUMNS, B_ACROSS> b(p.b, at, at.column, p.n);
    const matmul_mma_view<A_ACROSS> left(warp / 4 * 64, false);
    const matmul_mma_view<B_ACROSS> right(warp % 4 * 64, true);
    Sum sum[4][8][4] = {};
    matmul_fill<STAGES, STAGE, A_BYTES>(a, b, memory, steps);
    sync_block();
    matmul_mma_slice<A_ACROSS, B_ACROSS> slice[2]; /* this one, and the next, which is read ahead */
    char *from = memory, *to = memory + (STAGES - 1) * STAGE;
    slice[0].load(from, 0, left, right);
    for (int step = 0; step < steps; step++) {
        char *const next = from < memory + (STAGES - 1) * STAGE ? from + STAGE : memory;
#pragma unroll
        for (int i = 0; i < SLICES; i++) {
            const bool last = i == SLICES - 1;
            if (last) {
                copy_wait<STAGES - 2>();
                sync_block(); /* the next step is there, and nobody reads this one any more */
            }
            slice[(i + 1) % 2].load(last ? next : from, (i + 1) % SLICES, left, right);
            slice[i % 2].multiply(T(), sum);
            if (i == 0 && step + STAGES - 1 < steps) {
                a.copy(to);
                b.copy(to + A_BYTES);
            }
            if (i == 0) copy_commit();
        }
        to = from, from = next;
    }
    sync_block();
    matmul_mma_end(p, at, sum, memory);
}

#endif
