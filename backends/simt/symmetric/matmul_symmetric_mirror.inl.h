/* SPDX-License-Identifier: Apache-2.0 */
/* What is below the diagonal of d, put across it: a block has a tile, which turns in shared memory; by 16 bytes where
 * it is whole and aligned. */
#ifndef TRINE_SIMT_MATMUL_SYMMETRIC_MIRROR_INL_H
#define TRINE_SIMT_MATMUL_SYMMETRIC_MIRROR_INL_H

#include "matmul_symmetric_tiles.inl.h"

/* Pieces of 16 bytes change places by row, so that neither rows nor columns meet in a bank. */
template <class Bits> struct alignas(16) symmetric_turn {
    enum {
        SIDE = SYMMETRIC_MIRROR,
        PIECE = 16 / sizeof(Bits), /* elements */
        PIECES = SIDE / PIECE      /* of a row */
    };
    Bits part[SIDE][SIDE];

    DEVICE Bits *cell(int row, int column) {
        return &part[row][(column / PIECE ^ row / PIECE % PIECES) * PIECE + column % PIECE];
    }
    DEVICE void whole(const Bits *from, Bits *to, int64_t pitch) {
        using piece = packed<Bits, PIECE>;
#pragma unroll
        for (int i = thread_index(); i < SIDE * PIECES; i += SIMT_THREADS) {
            const int row = i / PIECES, at = i % PIECES * PIECE;
            *(piece *)cell(row, at) = *(const piece *)(from + row * pitch + at);
        }
        sync_block();
#pragma unroll
        for (int i = thread_index(); i < SIDE * PIECES; i += SIMT_THREADS) {
            const int row = i / PIECES, at = i % PIECES * PIECE;
            Bits x[PIECE];
#pragma unroll
            for (int k = 0; k < PIECE; k++) x[k] = *cell(at + k, row);
            store_whole(x, to + row * pitch + at);
        }
    }
    /* Row i of those that are there, up to its own number and `more`. */
    DEVICE void some(const Bits *from, Bits *to, int64_t pitch, int rows, int more) {
        for (int e = thread_index(); e < SIDE * SIDE; e += SIMT_THREADS) {
            const int i = e / SIDE, j = e % SIDE;
            if (i < rows && j < i + more) *cell(i, j) = from[i * pitch + j];
        }
        sync_block();
        for (int e = thread_index(); e < SIDE * SIDE; e += SIMT_THREADS) {
            const int j = e / SIDE, i = e % SIDE;
            if (i < rows && j < i + more) to[j * pitch + i] = *cell(i, j);
        }
    }
};

template <class Bits> DEVICE void symmetric_mirror(const symmetric_params &p) {
    enum { SIDE = SYMMETRIC_MIRROR };
    SHARED symmetric_turn<Bits> turn;
    const symmetric_tile at(p.tiles, SIDE);
    Bits *const d = (Bits *)p.d.data + at.batch * p.d.batch, *const from = d + at.row * p.d.row + at.column,
                *const to = d + at.column * p.d.row + at.row;
    const bool across = at.row == at.column;
    if (p.whole && !across && at.row + SIDE <= p.m)
        turn.whole(from, to, p.d.row);
    else
        turn.some(from, to, p.d.row, p.m - at.row < SIDE ? (int)(p.m - at.row) : SIDE, across ? 0 : SIDE);
}

#define SYMMETRIC_MIRRORS \
    ENTRY(matmul_symmetric_mirror_f32, SIMT_THREADS, symmetric_params) { symmetric_mirror<uint32_t>(p); } \
    ENTRY(matmul_symmetric_mirror_f64, SIMT_THREADS, symmetric_params) { symmetric_mirror<uint64_t>(p); } \
    ENTRY(matmul_symmetric_mirror_bf16, SIMT_THREADS, symmetric_params) { symmetric_mirror<uint16_t>(p); } \
    ENTRY(matmul_symmetric_mirror_f16, SIMT_THREADS, symmetric_params) { symmetric_mirror<uint16_t>(p); }

#endif
