/* SPDX-License-Identifier: Apache-2.0 */
/* What the tiles of matmul_scaled share: the steps along k, and what a thread fetches for one. */
#ifndef TRINE_SIMT_MATMUL_SCALED_TILES_INL_H
#define TRINE_SIMT_MATMUL_SCALED_TILES_INL_H

#include "matmul_scaled_values.inl.h"

enum {
    SCALED_PIECE = 8, /* elements that a thread fetches of a row */
    SCALED_PIECES = SCALED_DEPTH / SCALED_PIECE,
    SCALED_LINES = SIMT_THREADS / SCALED_PIECES, /* rows of which the block's threads fetch a piece each */
    SCALED_FETCHES = SCALED_COLUMNS / SCALED_LINES
};
static_assert((int)SCALED_ROWS == (int)SCALED_LINES, "a thread fetches a piece of a");

/* A step: elements [at, end) of a part of k, whose last step it may be. */
struct scaled_step {
    int32_t at, end, part;

    DEVICE scaled_step(const scaled_params &p, int32_t from) : at(from) {
        part = scaled_end_of(p, from);
        end = at + SCALED_DEPTH < part ? at + SCALED_DEPTH : part;
    }
    DEVICE void advance(const scaled_params &p) {
        at = end;
        if (at == part && at < p.k) part = scaled_end_of(p, at);
        end = at + SCALED_DEPTH < part ? at + SCALED_DEPTH : part;
    }
    DEVICE bool last() const { return end == part; }

  private:
    /* Where the part that begins at `from` ends: with a block of either side, after 128 elements, or with k. */
    static DEVICE int32_t scaled_end_of(const scaled_params &p, int32_t from) {
        const int64_t a = ((int64_t)quotient((uint32_t)from, p.a.block) + 1) * p.a.block.by,
                      b = ((int64_t)quotient((uint32_t)from, p.b.block) + 1) * p.b.block.by, least = a < b ? a : b,
                      most = from + 128 < p.k ? from + 128 : p.k;
        return (int32_t)(least < most ? least : most);
    }
};

DEVICE int64_t scaled_row_within(const scaled_side &s, int64_t row) { return row < s.rows ? row : s.rows - 1; }

/* The rows of a that a tile has: those that follow each other. */
struct scaled_neighbours {
    const scaled_side &side;
    int64_t first;

    DEVICE int64_t operator()(int i) const { return scaled_row_within(side, first + i); }
};

using scaled_piece = scaled_raw<SCALED_PIECE>;

/* What a thread fetches for a step. */
struct scaled_fetched {
    scaled_piece a, b[SCALED_FETCHES];

    template <class Rows>
    DEVICE void fetch(const scaled_params &p, const Rows &rows, int64_t column, const scaled_step &step) {
        const int line = thread_index() / SCALED_PIECES;
        const int32_t at = step.at + thread_index() % SCALED_PIECES * SCALED_PIECE;
        a = scaled_fetch<SCALED_PIECE>(p.a, p.a.data + rows(line) * p.a.row, at, step.end);
#pragma unroll
        for (int f = 0; f < SCALED_FETCHES; f++) {
            const int64_t j = scaled_row_within(p.b, column + line + f * SCALED_LINES);
            b[f] = scaled_fetch<SCALED_PIECE>(p.b, p.b.data + j * p.b.row, at, step.end);
        }
    }
};

#endif
