/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul by the tensor cores of sm_80 and later: a block has a tile of 64 rows and 128 columns, a warp 32 by 32
 * of it. Steps of 32 of k go to a ring of three stages, two ahead of their use.
 *
 * NOTES. Floor: w once for each tile of rows, x once for each tile of columns. Rows of a stage are pieces of 16 bytes
 * whose place is turned by the row's number, so that eight rows' pieces lie in eight banks. */
#ifndef TRINE_CUDA_GROUPED_MATMUL_MMA_H
#define TRINE_CUDA_GROUPED_MATMUL_MMA_H

#include <tile/mma.h>

#include "backends/simt/matmul/grouped_matmul_tiles.inl.h"

using grouped_piece = packed<uint32_t, 4>;
enum {
    GROUPED_STAGES = 3,
    GROUPED_A = GROUPED_DEPTH / VECTOR,   /* pieces of a row of x, and of w along k, */
    GROUPED_B = GROUPED_COLUMNS / VECTOR, /* and of w along n */
    GROUPED_A_PIECES = GROUPED_ROWS * GROUPED_A,
    GROUPED_B_PIECES = GROUPED_COLUMNS * GROUPED_A,
    GROUPED_WARP = 32 /* rows and columns of a warp */
};
static_assert((int)GROUPED_A_PIECES == (int)SIMT_THREADS, "a thread copies a piece of x");

struct grouped_stage {
    grouped_piece a[GROUPED_A_PIECES], b[GROUPED_B_PIECES];
};

/* Where a piece of a row of GROUPED_A pieces is, two rows being 128 bytes; and of a row of GROUPED_B. */
DEVICE int grouped_turned(int row, int piece) { return row * GROUPED_A + (piece ^ (row >> 1 & (GROUPED_A - 1))); }
DEVICE int grouped_turned_across(int row, int piece) { return row * GROUPED_B + (piece ^ (row & 7)); }

/* A piece, by a copy that is waited for where memory allows it. */
DEVICE void grouped_copy(grouped_piece *to, const uint16_t *row, const lane &l) {
    if (l.aligned && (within(l, VECTOR - 1) || !within(l, 0))) {
        copy_bytes<16>(to, within(l, 0) ? row + l.at : row, within(l, 0) ? 16 : 0);
        return;
    }
    uint16_t v[VECTOR];
    load_bits(v, row, l);
    __builtin_memcpy(to, v, sizeof v);
}

/* What a thread copies of x: a piece of its row. */
struct grouped_rows {
    const grouped_params &p;
    const uint16_t *x;
    bool there; /* has it a row? */

    DEVICE grouped_rows(const grouped_params &params, const grouped_tile &tile) : p(params) {
        const int own = tile.first + thread_index() / GROUPED_A;
        const int64_t source = tile.group >= 0 && own < tile.last ? grouped_source(p, own) : -1;
        x = (const uint16_t *)p.x.data + (source < 0 ? 0 : source) * p.x.row, there = source >= 0;
    }
    DEVICE void copy(grouped_stage &stage, int64_t at) const {
        const int thread = thread_index(), piece = thread % GROUPED_A;
        grouped_copy(&stage.a[grouped_turned(thread / GROUPED_A, piece)], x,
                     { there ? at + piece * VECTOR : p.k, p.k, p.x_aligned });
    }
};

/* What it copies of w: two pieces. Other weights are fetched a step before they are put where all find them. */
struct grouped_weights {
    static constexpr bool ACROSS = true; /* may neighbours in memory be neighbours in n? */
    const grouped_params &p;
    const uint16_t *w;
    int64_t column;

    DEVICE explicit grouped_weights(const grouped_params &params) : p(params) {}
    DEVICE void begin(int32_t group, int64_t first) { w = (const uint16_t *)p.w + group * p.w_group, column = first; }
    DEVICE void fetch(int64_t) {}
    DEVICE void put(grouped_stage &stage, int64_t at) const {
        const int thread = thread_index(), piece = thread % GROUPED_A;
#pragma unroll
        for (int i = 0; i < GROUPED_B_PIECES / SIMT_THREADS; i++) {
            const int number = thread + i * SIMT_THREADS;
            if (p.across) {
                const int row = number / GROUPED_B, part = number % GROUPED_B;
                const int64_t k = at + row;
                grouped_copy(&stage.b[grouped_turned_across(row, part)], w + (k < p.k ? k : 0) * p.w_along,
                             { k < p.k ? column + part * VECTOR : p.n, p.n, p.w_aligned });
            } else {
                const int row = number / GROUPED_A;
                const int64_t j = column + row;
                grouped_copy(&stage.b[grouped_turned(row, piece)], w + (j < p.n ? j : 0) * p.w_lane,
                             { j < p.n ? at + piece * VECTOR : p.k, p.k, p.w_aligned });
            }
        }
    }
};

/* A warp's products of a stage. */
template <class T>
DEVICE void grouped_multiply(float (&sum)[2][4][4], const grouped_stage &stage, int down, int right, bool across) {
    const int index = thread_index() % WARP / 8, row = thread_index() % 8;
#pragma unroll
    for (int k = 0; k < GROUPED_A; k += 2) { /* 16 elements are two pieces */
        uint32_t a[2][4], b[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            load_matrices<false>(a[i], &stage.a[grouped_turned(down + i * 16 + index % 2 * 8 + row, k + index / 2)]);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int lanes = right + j * 16 + index / 2 * 8;
            if (across)
                load_matrices<true>(b[j],
                                    &stage.b[grouped_turned_across((k + index % 2) * VECTOR + row, lanes / VECTOR)]);
            else
                load_matrices<false>(b[j], &stage.b[grouped_turned(lanes + row, k + index % 2)]);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                warp_multiply(T(), sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

/* Two neighbours of a row. */
template <class O>
DEVICE void grouped_put(const grouped_params &p, const grouped_tile &tile, const grouped_row &row, int64_t column,
                        float low, float high) {
    if (!row.there || column >= p.n) return;
    typename O::bits *const to = (typename O::bits *)p.y.data + row.at + column;
    low = row.template end<O>(p, tile.group, column, low);
    if (column + 1 >= p.n) {
        *to = O::put(low);
        return;
    }
    high = row.template end<O>(p, tile.group, column + 1, high);
    const packed<typename O::bits, 2> two = { { O::put(low), O::put(high) } };
    if (p.y_aligned)
        *(packed<typename O::bits, 2> *)to = two;
    else
        to[0] = two.v[0], to[1] = two.v[1];
}

template <class T, class O, class Weights> DEVICE void grouped_mma(const grouped_params &p, Weights weights) {
    SHARED grouped_stage stage[GROUPED_STAGES];
    const grouped_tile tile = p.tile[block_index() % p.tiles];
    const int64_t column = block_index() / p.tiles * GROUPED_COLUMNS;
    if (tile.first >= tile.last) return;
    const int warp = thread_index() / WARP, down = warp / (GROUPED_COLUMNS / GROUPED_WARP) * GROUPED_WARP,
              right = warp % (GROUPED_COLUMNS / GROUPED_WARP) * GROUPED_WARP;
    const grouped_rows rows(p, tile);
    weights.begin(tile.group < 0 ? 0 : tile.group, column);
    const int64_t steps = tile.group < 0 ? 0 : (p.k + GROUPED_DEPTH - 1) / GROUPED_DEPTH;
    float sum[2][4][4] = {};
    const auto feed = [&](grouped_stage &to, int64_t step) {
        if (step < steps) rows.copy(to, step * GROUPED_DEPTH), weights.put(to, step * GROUPED_DEPTH);
        copy_commit();
        if (step + 1 < steps) weights.fetch((step + 1) * GROUPED_DEPTH);
    };
    if (steps > 0) weights.fetch(0);
#pragma unroll
    for (int s = 0; s < GROUPED_STAGES - 1; s++) feed(stage[s], s);
    int now = 0, next = GROUPED_STAGES - 1;
    for (int64_t s = 0; s < steps; s++) {
        copy_wait<GROUPED_STAGES - 2>();
        sync_block();
        feed(stage[next], s + GROUPED_STAGES - 1);
        grouped_multiply<T>(sum, stage[now], down, right, Weights::ACROSS && p.across);
        now = now + 1 == GROUPED_STAGES ? 0 : now + 1, next = next + 1 == GROUPED_STAGES ? 0 : next + 1;
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int32_t at = tile.first + down + i * 16 + half * 8 + thread_index() % WARP / 4;
            const grouped_row row(p, tile, at);
#pragma unroll
            for (int j = 0; j < 4; j++)
                grouped_put<O>(p, tile, row, column + right + j * 8 + thread_index() % 4 * 2, sum[i][j][2 * half],
                               sum[i][j][2 * half + 1]);
        }
}

#endif
