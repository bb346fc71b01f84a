/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of f64 by the tensor cores of sm_80 and later.
 *
 * A block has a tile of d, a warp DOWN x RIGHT of it; groups of warps may share k, and meet at the end. Slices of 16
 * elements of k are copied to a ring of stages ahead of their use. Where k is consecutive a stage has a row of 128
 * bytes for each lane; where lanes are, one for each element of k. What an instruction calls rows r and 8 below, or
 * column c of two neighbouring products, are lanes 2 r and the next: so consecutive lanes are read as vectors of 16
 * bytes, and a thread's sums are 4 consecutive columns. No reads meet in a bank: lanes 2 apart have their elements of k
 * in other quarters of the 128 bytes, and rows of lanes are 32 bytes further each.
 *
 * NOTES, all of one H200. Floors: 2 m n k flops over 67 TFLOP/s (datasheet; 66.5 measured from registers), and the
 * operands once.
 * - Products of 8 x 8 with 4 elements of k run at half that rate on sm_90, those of 16 x 8 at all of it, with 4, 8 or
 * 16.
 * - With 8 elements of k, a's have to lie in eight consecutive registers by k, then by row: moves for operands whose k
 * is consecutive, 44 TFLOP/s at 4096. With 4, and reads of 8 bytes from such operands, there are none: 48.
 * - Reading the next step's elements before this one's products, also past the barrier at the end of a slice: from 48
 * to 59, where cuBLAS has 57. */
#ifndef TRINE_CUDA_MATMUL_F64_H
#define TRINE_CUDA_MATMUL_F64_H

#include <tile/mma.h>

#include "matmul_mma_end.h"

template <int LANES, bool ACROSS> struct matmul_f64_rows {
    enum { PITCH = ACROSS ? LANES * 8 + 32 : 128, BYTES = LANES * 128 + 512 };
    /* Piece c of 16 bytes of a row. */
    static DEVICE int at(int row, int piece) { return row * PITCH + (ACROSS ? piece : piece ^ row / 2 % 4 * 2) * 16; }
};

/* The pieces of a slice that a thread copies; what lies beyond the operand is 0. */
template <int LANES, bool ACROSS, int THREADS> struct matmul_f64_copies {
    using rows = matmul_f64_rows<LANES, ACROSS>;
    enum { PIECES = ACROSS ? LANES / 2 : 8, STEP = THREADS / PIECES, COUNT = MATMUL_F64_DEPTH * LANES / 2 / THREADS };
    static_assert(ACROSS || STEP % 8 == 0, "rows so far apart have their pieces alike");
    const double *at;
    int64_t next, step, inner; /* from slice to slice, from piece to piece, to the piece's other element */
    int64_t deep;              /* elements of k from the slice's first on */
    int rest;                  /* lanes from the first piece on */
    int along, place;          /* of the first piece */
    bool wide, inside;         /* aligned; and no lane is beyond the operand */

    /* From element `skip` of k on. */
    DEVICE matmul_f64_copies(const matmul_operand &from, const matmul_place &tile, int64_t first, int64_t end,
                             int64_t skip, int thread) {
        const int row = thread / PIECES, piece = thread % PIECES, lane = ACROSS ? piece * 2 : row;
        along = ACROSS ? row : piece * 2, place = rows::at(row, piece);
        at = matmul_at<double>(from, tile, first + lane, skip + along);
        next = MATMUL_F64_DEPTH * from.along, step = STEP * (ACROSS ? from.along : from.lane),
        inner = ACROSS ? from.lane : from.along;
        wide = from.wide, inside = wide && end - first >= LANES, deep = tile.depth - skip;
        rest = (end - first < LANES ? (int)(end - first) : (int)LANES) - lane;
    }

    /* At the operand's edges, or where it is not aligned. */
    DEVICE void copy_part(char *to) const {
#pragma unroll 1
        for (int q = 0; q < COUNT; q++) {
            const int64_t left = deep - along - (ACROSS ? q * STEP : 0);
            const int lanes = rest - (ACROSS ? 0 : q * STEP),
                      most = ACROSS     ? lanes
                             : left < 2 ? (int)left
                                        : 2,
                      count = left <= 0 || lanes <= 0 ? 0
                              : most < 2              ? most
                                                      : 2;
            const double *const from = at + q * step;
            if (wide) {
                copy_bytes<16>(to + q * STEP * rows::PITCH, count > 0 ? from : nullptr, count * 8);
            } else {
                for (int i = 0; i < 2; i++)
                    copy_bytes<8>(to + q * STEP * rows::PITCH + i * 8, i < count ? from + i * inner : nullptr,
                                  i < count ? 8 : 0);
            }
        }
    }

    DEVICE void copy(char *to) {
        if (inside && deep >= MATMUL_F64_DEPTH) {
#pragma unroll
            for (int q = 0; q < COUNT; q++) copy_bytes<16>(to + place + q * STEP * rows::PITCH, at + q * step, 16);
        } else {
            copy_part(to + place);
        }
        at += next, deep -= MATMUL_F64_DEPTH;
    }
};

/* A thread's lanes 2 r and the next of 16, for its one of four elements of k. */
template <int LANES, bool ACROSS> struct matmul_f64_view {
    using rows = matmul_f64_rows<LANES, ACROSS>;
    int base;

    DEVICE explicit matmul_f64_view(int first) {
        const int lane = thread_index() % WARP, row = lane / 4, in = lane % 4;
        base = ACROSS ? rows::at(in, first / 2 + row) : rows::at(first + row * 2, in / 2) + in % 2 * 8;
    }
    DEVICE void load(double (&x)[2], const char *stage, int sixteen, int four) const {
        if constexpr (ACROSS) {
            const packed<double, 2> two =
                *(const packed<double, 2> *)(stage + base + four * 4 * rows::PITCH + sixteen * 128);
            x[0] = two.v[0], x[1] = two.v[1];
        } else {
            const char *const from = stage + (base ^ four * 32) + sixteen * 16 * rows::PITCH;
            x[0] = *(const double *)from, x[1] = *(const double *)(from + rows::PITCH);
        }
    }
};

/* A tile, what a warp has of it, and how many groups of warps share k. */
template <int ROWS, int COLUMNS, int DOWN, int RIGHT, int GROUPS> struct matmul_f64_shape {
    enum {
        BESIDE = COLUMNS / RIGHT,
        TEAM = ROWS / DOWN * BESIDE * WARP,
        THREADS = TEAM * GROUPS,
        HALF = ROWS * 128 + 512,
        STAGE = HALF + COLUMNS * 128 + 512
    };
};

/* The ring's first slices on their way, each a's and, AFTER that, b's; and the thread's part of the first one there. */
template <int STAGES, int STAGE, int AFTER, class A, class B, class Memory>
DEVICE void matmul_fill(A &a, B &b, Memory *memory, int slices) {
    for (int slice = 0; slice < STAGES - 1; slice++) {
        if (slice < slices) {
            a.copy(memory + slice * STAGE);
            b.copy(memory + slice * STAGE + AFTER);
        }
        copy_commit();
    }
    copy_wait<STAGES - 2>();
}

/* The tiles of all groups added to the first one's. */
template <int SIZE, int GROUPS, int THREADS> DEVICE void matmul_f64_meet(double *tile) {
    if (GROUPS > 1) sync_block();
    for (int i = thread_index(); GROUPS > 1 && i < SIZE; i += THREADS) {
        double sum = tile[i];
#pragma unroll
        for (int g = 1; g < GROUPS; g++) sum += tile[g * SIZE + i];
        tile[i] = sum;
    }
}

template <int ROWS, int COLUMNS, int DOWN, int RIGHT, int GROUPS, int STAGES, bool A_ACROSS, bool B_ACROSS>
DEVICE void matmul_f64(const matmul_params &p) {
    using shape = matmul_f64_shape<ROWS, COLUMNS, DOWN, RIGHT, GROUPS>;
    enum {
        I = DOWN / 16,
        J = RIGHT / 16,
        TEAM = shape::TEAM,
        HALF = shape::HALF,
        STAGE = shape::STAGE,
        PITCH = COLUMNS + 4,
        FOURS = MATMUL_F64_DEPTH / 4
    };
    const int group = GROUPS > 1 ? thread_index() / TEAM : 0, thread = thread_index() - group * TEAM,
              warp = thread / WARP;
    char *const memory = launch_memory() + group * STAGES * STAGE;
    const matmul_place at = matmul_place_of(p, ROWS, COLUMNS, block_index());
    /* of each group */
    const int slices = (int)((at.depth + MATMUL_F64_DEPTH * GROUPS - 1) / (MATMUL_F64_DEPTH * GROUPS));
    const int64_t first = (int64_t)group * slices * MATMUL_F64_DEPTH;
    const int down = warp / shape::BESIDE * DOWN, right = warp % shape::BESIDE * RIGHT;
    matmul_f64_copies<ROWS, A_ACROSS, TEAM> a(p.a, at, at.row, p.m, first, thread);
    matmul_f64_copies<COLUMNS, B_ACROSS, TEAM> b(p.b, at, at.column, p.n, first, thread);
    const matmul_f64_view<ROWS, A_ACROSS> left(down);
    const matmul_f64_view<COLUMNS, B_ACROSS> above(right);
    /* operands of one step of 4 elements of k while the next ones are read */
    double sum[I][2 * J][4] = {}, x[2][I][2], y[2][J][2];
    char *from = memory, *to = memory + (STAGES - 1) * STAGE;
    matmul_fill<STAGES, STAGE, HALF>(a, b, memory, slices);
    sync_team(group, TEAM);
#pragma unroll
    for (int j = 0; j < J; j++) above.load(y[0][j], from + HALF, j, 0);
#pragma unroll
    for (int i = 0; i < I; i++) left.load(x[0][i], from, i, 0);
    for (int slice = 0; slice < slices; slice++) {
        char *const next = from < memory + (STAGES - 1) * STAGE ? from + STAGE : memory;
        const bool more = slice + STAGES - 1 < slices;
#pragma unroll
        for (int four = 0; four < FOURS; four++) {
            const char *const stage = four < FOURS - 1 ? from : next;
            if (four == FOURS - 1) {
                copy_wait<STAGES - 2>();
                sync_team(group, TEAM); /* the next slice is there, and nobody reads this one any more */
            }
#pragma unroll
            for (int j = 0; j < J; j++) above.load(y[(four + 1) % 2][j], stage + HALF, j, (four + 1) % FOURS);
#pragma unroll
            for (int i = 0; i < I; i++) left.load(x[(four + 1) % 2][i], stage, i, (four + 1) % FOURS);
#pragma unroll
            for (int i = 0; i < I; i++)
#pragma unroll
                for (int j = 0; j < 2 * J; j++) warp_multiply(sum[i][j], x[four % 2][i], y[four % 2][j / 2][j % 2]);
            if (four == 0 && more) a.copy(to);
            if (four == 1 && more) b.copy(to + HALF);
            if (four == 1) copy_commit();
        }
        to = from, from = next;
    }
    sync_block();
    double *const all = (double *)launch_memory(), *const tile = all + group * ROWS * PITCH;
    const int row = down + thread % WARP / 4 * 2, column = right + thread % 4 * 4;
#pragma unroll
    for (int i = 0; i < I; i++)
#pragma unroll
        for (int j = 0; j < 2 * J; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                tile[(row + i * 16 + e / 2) * PITCH + column + j / 2 * 16 + e % 2 * 2 + j % 2] = sum[i][j][e];
    matmul_f64_meet<ROWS * PITCH, GROUPS, shape::THREADS>(all);
    matmul_tile_end<ROWS, COLUMNS, shape::THREADS>(p, at, all, PITCH);
}

#endif
