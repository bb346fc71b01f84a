/* SPDX-License-Identifier: Apache-2.0 */
/* What comes to products by mma.sync: steps of 128 bytes of k of both operands' lanes, copied to a ring of stages ahead
 * of their use. A stage has rows of 128 bytes, in which piece c of 16 bytes of row r is at c ^ r % 8, so that neither
 * copies nor matrices meet in a bank; rows are lanes where k is consecutive, and elements of k where 64 lanes are: 64
 * rows of one panel of lanes, then those of the next. */
#ifndef TRINE_CUDA_MATMUL_MMA_FEED_H
#define TRINE_CUDA_MATMUL_MMA_FEED_H

#include <tile/access.h>
#include <tile/mma.h>

#include "matmul_simt.h"

/* Of an element: its sums, its bytes, and what d may be besides those sums. Float8 is widened to f16. */
template <class T> struct matmul_mma_type;
template <> struct matmul_mma_type<bf16> {
    using sum = float;
    using bits = uint16_t;
    enum { SIZE = 2, IN_BF16 = 1, IN_F16 = 0 };
};
template <> struct matmul_mma_type<f16> {
    using sum = float;
    using bits = uint16_t;
    enum { SIZE = 2, IN_BF16 = 1, IN_F16 = 1 };
};
template <> struct matmul_mma_type<tf32> {
    using sum = float;
    using bits = uint32_t;
    enum { SIZE = 4, IN_BF16 = 0, IN_F16 = 0 };
};
template <> struct matmul_mma_type<int8_t> {
    using sum = int32_t;
    using bits = int8_t;
    enum { SIZE = 1, IN_BF16 = 0, IN_F16 = 0 };
};

/* A block's tile, how many of its warps lie below and beside each other, and its ring. A warp has every DOWN-th 16
 * rows, and every RIGHT-th 16 columns. */
template <int ROWS_, int COLUMNS_, int DOWN_, int RIGHT_, int STAGES_> struct matmul_mma_shape {
    enum {
        ROWS = ROWS_,
        COLUMNS = COLUMNS_,
        DOWN = DOWN_,
        RIGHT = RIGHT_,
        STAGES = STAGES_,
        THREADS = DOWN_ * RIGHT_ * WARP,
        STAGE = (ROWS_ + COLUMNS_) * 128
    };
    enum { M = ROWS / DOWN / 16, N = COLUMNS / RIGHT / 16 }; /* of a warp: 16 rows, 16 columns */
    static_assert(ROWS == M * DOWN * 16 && COLUMNS == N * RIGHT * 16);
    /* A warp's first row in its m-th 16, and its first column in its n-th 16. */
    static DEVICE int row(int m) { return (m * DOWN + thread_index() / WARP / RIGHT) * 16; }
    static DEVICE int column(int n) { return (n * RIGHT + thread_index() / WARP % RIGHT) * 16; }
};

DEVICE int matmul_swizzled(int row, int piece) { return row * 128 + ((piece ^ row % 8) << 4); }

/* The pieces of a step of an operand's lanes that a thread copies. Lanes beyond the operand are
 * not: nobody sees what comes of them. */
template <class T, int LANES, int THREADS, bool ACROSS> struct matmul_mma_copies {
    using Bits = typename matmul_mma_type<T>::bits;
    enum { SIZE = matmul_mma_type<T>::SIZE, PIECE = 16 / SIZE, ROWS = THREADS / 8, COUNT = LANES / ROWS, AT_ONCE = 4 };
    static_assert(LANES % ROWS == 0 && (!ACROSS || (LANES % 64 == 0 && SIZE == 2)));
    const char *at; /* the next one */
    int rest;       /* lanes of the operand, from the first piece on */

    DEVICE void begin(const matmul_operand &from, const matmul_place &tile, int64_t first, int64_t end) {
        const int row = thread_index() / 8, piece = thread_index() % 8 * PIECE, lane = ACROSS ? piece : row;
        at = (const char *)matmul_at<Bits>(from, tile, first + lane, ACROSS ? row : piece);
        rest = (end - first < LANES ? (int)(end - first) : (int)LANES) - lane;
    }

    /* From a step's first piece to the one i * ROWS rows further on; COUNT: to the next step's first. */
    static DEVICE int64_t offset(const matmul_operand &from, int i) {
        const int row = i * ROWS;
        if (i == COUNT) return ACROSS ? from.along * 128 : 128;
        return ACROSS ? row % 64 * from.along * SIZE + row / 64 * 128 : row * from.lane * SIZE;
    }
    static DEVICE int lane(int i) { return ACROSS ? i * ROWS / 64 * 64 : i * ROWS; }

    /* Piece i, in its turn, of a step of which the operand has all elements of k, if `yes`. Addresses follow from one
     * of every AT_ONCE: more would not fit into registers, and one that a copy in flight still has to read cannot be
     * added to. */
    DEVICE void copy(const matmul_operand &from, char *to, int i, bool yes) {
        const int start = i / AT_ONCE * AT_ONCE;
        const char *const source = at + (offset(from, i) - offset(from, start));
        copy_if<16>(yes && rest > lane(i),
                    to + matmul_swizzled(thread_index() / 8, thread_index() % 8) + i * ROWS * 128, source);
        if (i < COUNT - 1 && (i + 1) % AT_ONCE != 0) return;
        at += offset(from, i + 1) - offset(from, start);
        keep_address(at);
    }

    /* All of a step that has only `deep` elements of k, or whose pieces are not aligned, or not whole.
     * What lies beyond is 0. */
    DEVICE void copy_part(const matmul_operand &from, char *to, int deep) const {
        const int first = thread_index() / 8, piece = thread_index() % 8 * PIECE;
#pragma unroll 1
        for (int i = 0; i < COUNT; i++) {
            const int row = first + i * ROWS, left = deep - (ACROSS ? row % 64 : piece), lanes = rest - lane(i),
                      most = ACROSS ? lanes : left;
            const int count = lanes <= 0 || left <= 0 ? 0 : most < PIECE ? most : (int)PIECE;
            char *const there = to + matmul_swizzled(row, thread_index() % 8);
            const char *const source = at + offset(from, i);
            if (from.wide)
                copy_bytes<16>(there, count > 0 ? source : nullptr, count * SIZE);
            else
#pragma unroll 1
                for (int e = 0; e < PIECE; e++) ((Bits *)there)[e] = e < count ? ((const Bits *)source)[e] : Bits(0);
        }
    }
};

/* Both operands' steps, one after the other, each as COUNT calls of copy() for each thread. */
template <class T, class Shape, bool A_ACROSS, bool B_ACROSS> struct matmul_mma_feed {
    using copies_a = matmul_mma_copies<T, Shape::ROWS, Shape::THREADS, A_ACROSS>;
    using copies_b = matmul_mma_copies<T, Shape::COLUMNS, Shape::THREADS, B_ACROSS>;
    enum { STEP = 128 / matmul_mma_type<T>::SIZE, COUNT = copies_a::COUNT + copies_b::COUNT };
    copies_a a;
    copies_b b;
    int step, steps, whole, last; /* the next; all, and those of which pieces are whole; elements of k in the last */

    DEVICE void begin(const matmul_params &p, const matmul_place &at) {
        const bool aligned = p.a.wide && p.b.wide && (!A_ACROSS || p.m % copies_a::PIECE == 0) &&
                             (!B_ACROSS || p.n % copies_b::PIECE == 0);
        a.begin(p.a, at, at.row, p.m);
        b.begin(p.b, at, at.column, p.n);
        step = 0, steps = (int)((at.depth + STEP - 1) / STEP), whole = aligned ? (int)(at.depth / STEP) : 0;
        last = (int)(at.depth - (int64_t)(steps - 1) * STEP);
    }
    DEVICE void copy(const matmul_params &p, char *to, int i) {
        if (i == 0 && step >= whole && step < steps) {
            const int deep = step < steps - 1 ? (int)STEP : last;
            a.copy_part(p.a, to, deep);
            b.copy_part(p.b, to + Shape::ROWS * 128, deep);
        }
        if (i < copies_a::COUNT)
            a.copy(p.a, to, i, step < whole);
        else
            b.copy(p.b, to + Shape::ROWS * 128, i - copies_a::COUNT, step < whole);
        if (i < COUNT - 1) return;
        copy_commit();
        step++;
    }
};

#endif
