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
 * through b to and fro. An end that asks for each row what to do took 9 % of the time; without questions, where alpha is all that sums meet: 445 to 490. */
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
 * 64 lanes, rows 64 to 127 the same ones of the next, and so on. Nothing here changes from step to step: an address that copies under way still have to read
 * cannot be added to. */
template <class T, int LANES, bool ACROSS> struct matmul_mma_copies {
    using Bits = typename matmul_mma_type<T>::bits;
    enum { SIZE = matmul_mma_type<T>::SIZE, PIECE = 16 / SIZE, ROWS = MATMUL_THREADS / 8, COUNT = MATMUL_SIDE / ROWS };
    const char *at; /* the first piece of the first step */
    int rest, deep; /* lanes, and elements of k in the last step, from there on */
    int place;

    DEVICE matmul_mma_copies(const matmul_operand &from, const matmul_place &tile, int64_t first, int64_t end) {
        const int row = thread_index() / 8, piece = thread_index() % 8 * PIECE, lane = ACROSS ? piece : row, along = ACROSS ? row : piece, step = 128 / SIZE;
        place = matmul_swizzled(row, thread_index() % 8);
        rest = (int)(end - first < LANES ? end - first : (int64_t)LANES) - lane;
        deep = (int)(tile.depth - (tile.depth - 1) / step * step) - along;
        at = (const char *)matmul_at<Bits>(from, tile, first + lane, along);
    }

    /* The thread's piece of row i * ROWS further on. */
    DEVICE const char *piece_at(const matmul_operand &from, int step, int i) const {
        const int row = i * ROWS;
        const int64_t across = row % 64 * from.along * SIZE + row / 64 * 128, along = row * from.lane * SIZE;
        return at + step * (ACROSS ? from.along * 128 : 128) + (ACROSS ? across : along);
    }

    /* MATMUL_SIDE lanes of a step that is in the operand. */
    DEVICE void copy(const matmul_operand &from, char *to, int step, int side) const {
#pragma unroll
        for (int i = side * COUNT; i < (side + 1) * COUNT; i++) copy_bytes<16>(to + place + i * ROWS * 128, piece_at(from, step, i), 16);
    }

    /* At the operand's edges, or where it is not aligned. */
    DEVICE void copy_part(const matmul_operand &from, char *to, int step, int side, bool last) const {
#pragma unroll 1
        for (int i = side * COUNT; i < (side + 1) * COUNT; i++) {
            const int row = i * ROWS, lanes = rest - (ACROSS ? row / 64 * 64 : row), left = (last ? deep : 128) - (ACROSS ? row % 64 : 0);
            const int most = ACROSS ? lanes : left, count = lanes <= 0 || left <= 0 ? 0 : most < PIECE ? most : (int)PIECE;
            char *const there = to + place + row * 128;
            if (from.wide)
                copy_bytes<16>(there, count > 0 ? piece_at(from, step, i) : nullptr, count * SIZE);
            else
#pragma unroll 1
                for (int e = 0; e < PIECE; e++) ((Bits *)there)[e] = e < count ? ((const Bits *)piece_at(from, step, i))[e] : Bits(0);
        }
    }
};

/* Both operands' steps, one after the other. */
template <class T, bool A_ACROSS, bool B_ACROSS> struct matmul_mma_feed {
    enum { STEP = 128 / matmul_mma_type<T>::SIZE, THIRDS = 3 };
    static_assert(MATMUL_MMA_COLUMNS == 2 * MATMUL_SIDE);
    matmul_mma_copies<T, MATMUL_SIDE, A_ACROSS> a;
    matmul_mma_copies<T, MATMUL_MMA_COLUMNS, B_ACROSS> b;
    int steps, whole; /* the steps, and those that both operands have all of */

    DEVICE matmul_mma_feed(const matmul_params &p, const matmul_place &at) : a(p.a, at, at.row, p.m), b(p.b, at, at.column, p.n) {
        const bool inside = p.a.wide && p.b.wide && p.m - at.row >= MATMUL_SIDE && p.n - at.column >= MATMUL_MMA_COLUMNS;
        steps = (int)((at.depth + STEP - 1) / STEP), whole = inside ? (int)(at.depth / STEP) : 0;
    }
    /* A third of a step: all of it at once would keep reads from shared memory waiting. */
    DEVICE void copy(const matmul_params &p, char *to, int step, int third) const {
        if (step < whole) {
            if (third == 0)
                a.copy(p.a, to, step, 0);
            else
                b.copy(p.b, to + MATMUL_SIDE * 128, step, third - 1);
        } else if (step < steps) {
            if (third == 0)
                a.copy_part(p.a, to, step, 0, step == steps - 1);
            else
                b.copy_part(p.b, to + MATMUL_SIDE * 128, step, third - 1, step == steps - 1);
        }
        if (third == THIRDS - 1) copy_commit();
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

/* The same where alpha is all that sums meet and the tile is wholly in d: no questions but of the type, asked once. */
template <class Out, int ROWS, int COLUMNS, int THREADS, class Sum>
DEVICE void matmul_plain_end(const matmul_params &p, const matmul_place &at, const Sum *tile, int pitch) {
    enum { UNITS = COLUMNS / 4, STEP = THREADS / UNITS };
    const int row = thread_index() / UNITS, column = thread_index() % UNITS * 4;
    int64_t to = at.result * p.to.d_batch + (at.row + row) * p.to.d_row + at.column + column;
    sync_block();
#pragma unroll 8
    for (int i = row; i < ROWS; i += STEP, to += STEP * p.to.d_row) {
        Sum x[4];
        matmul_take(x, tile + i * pitch + column);
#pragma unroll
        for (int e = 0; e < 4; e++) x[e] = matmul_times(p.to.alpha, x[e]);
        if constexpr (sizeof(typename Out::bits) == 2)
            store_words((uint16_t *)p.to.d + to, Out::pair(x[0], x[1]), Out::pair(x[2], x[3]));
        else
            store_whole(x, (Sum *)p.to.d + to);
    }
}

template <class Sum> DEVICE void matmul_mma_end(const matmul_params &p, const matmul_place &at, const Sum (&sum)[4][8][4], char *memory) {
    enum { ROWS = MATMUL_SIDE, COLUMNS = MATMUL_MMA_COLUMNS, THREADS = MATMUL_THREADS, PITCH = COLUMNS + 8 };
    Sum *const tile = (Sum *)memory;
    const int warp = thread_index() / WARP, lane = thread_index() % WARP, down = warp / 4 * 64 + lane / 4, right = warp % 4 * 64 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) tile[(down + i * 16 + e / 2 * 8) * PITCH + right + j * 8 + e % 2] = sum[i][j][e];
    const bool inside = p.to.wide && p.m - at.row >= ROWS && p.n - at.column >= COLUMNS;
    if (!inside || !p.to.plain || p.to.rows.data || p.to.columns.data)
        matmul_tile_end<ROWS, COLUMNS, THREADS>(p, at, tile, PITCH);
    else if (Sum(0.5) == 0 || p.to.type == MATMUL_F32)
        matmul_plain_end<f32, ROWS, COLUMNS, THREADS>(p, at, tile, PITCH);
    else if constexpr (Sum(0.5) != 0) {
        if (p.to.type == MATMUL_BF16)
            matmul_plain_end<bf16, ROWS, COLUMNS, THREADS>(p, at, tile, PITCH);
        else
            matmul_plain_end<f16, ROWS, COLUMNS, THREADS>(p, at, tile, PITCH);
    }
}

template <class T, bool A_ACROSS, bool B_ACROSS> DEVICE void matmul_mma(const matmul_params &p) {
    using Sum = typename matmul_mma_type<T>::sum;
    enum { STAGE = MATMUL_MMA_BYTES, STAGES = MATMUL_MMA_STAGES, SLICES = 4 };
    char *const memory = launch_memory();
    const matmul_place at = matmul_place_of(p, MATMUL_SIDE, MATMUL_MMA_COLUMNS);
    const int warp = thread_index() / WARP;
    const matmul_mma_feed<T, A_ACROSS, B_ACROSS> feed(p, at);
    const matmul_mma_view<A_ACROSS> left(warp / 4 * 64, false);
    const matmul_mma_view<B_ACROSS> right(warp % 4 * 64, true);
    Sum sum[4][8][4] = {};
    for (int step = 0; step < STAGES - 1; step++)
#pragma unroll
        for (int third = 0; third < feed.THIRDS; third++) feed.copy(p, memory + step * STAGE, step, third);
    copy_wait<STAGES - 2>();
    sync_block();
    matmul_mma_slice<A_ACROSS, B_ACROSS> slice[2]; /* this one, and the next, which is read ahead */
    char *from = memory, *to = memory + (STAGES - 1) * STAGE;
    slice[0].load(from, 0, left, right);
#pragma unroll 1
    for (int step = 0; step < feed.steps; step++) {
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
            if (!last) feed.copy(p, to, step + STAGES - 1, i);
        }
        to = from, from = next;
    }
    sync_block();
    matmul_mma_end(p, at, sum, memory);
}

#endif
