/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on sm_90a: products of float8, or of i8, in tiles of rows_sm90.inl.h.
 *
 * The producer's first warp copies operands, and the others bring the scales of a stage in turns, as floats. The sums
 * of a part of k, of 128 elements or of 32, are added to the totals in f32, times both scales.
 *
 * NOTES. Floor: 2 m n k flops over 1979 TFLOP/s. While one warpgroup scales its sums the other multiplies. */
#include "backends/cuda/matmul/rows_sm90.inl.h"
#include "matmul_scaled_sm90.h"
#include "backends/simt/scaled/matmul_scaled_values.inl.h"

/* COLUMNS of a tile; PART: elements of k whose sums are scaled together; BLOCKS: 128 rows of b have one scale. */
template <class Type, int COLUMNS, int ELEMENTS, bool BY_BLOCKS> struct scaled_tile_of {
    using T = Type;
    using Pipe = rows_pipe<T, COLUMNS, false, SCALED_SM90_SCALES(COLUMNS, ELEMENTS, BY_BLOCKS)>;
    enum {
        N = COLUMNS,
        PART = ELEMENTS,
        BLOCKS = BY_BLOCKS,
        PARTS = 128 / ELEMENTS,
        WIDTH = 128 < COLUMNS ? 128 : COLUMNS, /* columns of one product */
        B_SCALES = BY_BLOCKS ? 128 : COLUMNS,  /* places; of blocks, those of the first */
        LINE = (ROWS_SM90_ROWS + B_SCALES) * 4 /* bytes of a part's scales: a's, then b's */
    };
};

/* The scales of a tile, by one warp: where those of a lane's rows begin. */
template <class Tile> struct scaled_scales {
    enum { A = ROWS_SM90_ROWS / WARP, B = Tile::BLOCKS ? 1 : Tile::B_SCALES / WARP };
    const scaled_params &p;
    int32_t a[A], b[B];

    DEVICE scaled_scales(const scaled_params &p_, int row, int column) : p(p_) {
        const int lane = thread_index() % WARP;
#pragma unroll
        for (int i = 0; i < A; i++) a[i] = line_of(p.a, row + i * WARP + lane);
#pragma unroll
        for (int i = 0; i < B; i++) b[i] = line_of(p.b, column + (Tile::BLOCKS ? lane * 128 : i * WARP + lane));
    }
    DEVICE static int32_t line_of(const scaled_side &s, int at) {
        const uint32_t last = (uint32_t)s.rows - 1, row = (uint32_t)at < last ? (uint32_t)at : last;
        return s.scale ? (int32_t)(row / (uint32_t)s.row_block * s.scale_row) : 0;
    }
    /* Those of a stage, of which the elements of k begin at `along`. */
    DEVICE void bring(uint32_t to, int32_t along) const {
        const int lane = thread_index() % WARP;
#pragma unroll 1
        for (int part = 0; part < Tile::PARTS; part++) {
            const int32_t from = along + part * Tile::PART, at = from < p.k ? from : p.k - 1;
            const uint32_t line = to + part * Tile::LINE + lane * 4;
            float x[A], y[B];
#pragma unroll
            for (int i = 0; i < A; i++) x[i] = scaled_scale(p.a, a[i], at);
#pragma unroll
            for (int i = 0; i < B; i++) y[i] = scaled_scale(p.b, b[i], at);
#pragma unroll
            for (int i = 0; i < A; i++) shared_store(line + i * WARP * 4, bits_of_float(x[i]));
#pragma unroll
            for (int i = 0; i < B; i++) shared_store(line + (ROWS_SM90_ROWS + i * WARP) * 4, bits_of_float(y[i]));
        }
    }
};

DEVICE float scaled_float(float x) { return x; }
DEVICE float scaled_float(int32_t x) { return (float)x; } /* exact: sums of 128 products of bytes */

/* A consumer's totals. */
template <class Tile>
DEVICE void scaled_multiply(float (&total)[Tile::N / 2], typename Tile::Pipe &pipe, const rows_task &task, int group) {
    enum { COUNT = Tile::WIDTH / 2, UNITS = Tile::PART / 32 /* of 32 bytes of k */ };
    using Product = wgmma<typename Tile::T, Tile::WIDTH, false, false>;
    const int thread = thread_index() % WARPGROUP, lane = thread % WARP,
              row = group * 64 + thread / WARP * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < Tile::N / 2; i++) total[i] = 0;
    for (int step = 0; step < task.steps; step++, pipe.advance()) {
        barrier_wait(pipe.full(), pipe.parity);
        const uint64_t x = wgmma_operand(pipe.x() + group * 8192, Tile::Pipe::PANEL),
                       y = wgmma_operand(pipe.y(), Tile::Pipe::PANEL);
#pragma unroll
        for (int part = 0; part < Tile::PARTS; part++) {
            const uint32_t line = pipe.more() + part * Tile::LINE;
            float rows[2];
#pragma unroll
            for (int i = 0; i < 2; i++) rows[i] = shared_load_float(line + (row + i * 8) * 4);
#pragma unroll
            for (int first = 0; first < Tile::N; first += Tile::WIDTH) {
                typename Product::sum sum[COUNT];
                wgmma_begin();
#pragma unroll
                for (int i = 0; i < UNITS; i++)
                    Product::multiply(sum, x + (part * UNITS + i) * 2, y + first * 8 + (part * UNITS + i) * 2, i > 0);
                wgmma_commit();
                wgmma_wait<0>();
                wgmma_settle(sum);
                const uint32_t columns = line + ROWS_SM90_ROWS * 4;
                if constexpr (Tile::BLOCKS) {
                    const float of = shared_load_float(columns + first / 128 * 4);
                    const float factor[2] = { rows[0] * of, rows[1] * of };
#pragma unroll
                    for (int i = 0; i < COUNT; i++)
                        total[first / 2 + i] = fused(scaled_float(sum[i]), factor[i / 2 % 2], total[first / 2 + i]);
                } else {
#pragma unroll
                    for (int i = 0; i < COUNT; i += 4) {
                        uint32_t two[2];
                        shared_load(columns + (first + i * 2 + lane % 4 * 2) * 4, two[0], two[1]);
#pragma unroll
                        for (int e = 0; e < 4; e++)
                            total[first / 2 + i + e] =
                                fused(scaled_float(sum[i + e]), rows[e / 2] * float_of_bits(two[e % 2]),
                                      total[first / 2 + i + e]);
                    }
                }
            }
        }
        sync_some(1 + group, WARPGROUP); /* all have read the scales */
        Tile::Pipe::done(pipe.empty(), task.rank);
    }
}

/* alpha, bias and activation of 16 columns, of which a thread has four in each of its rows. */
template <int COUNT> DEVICE void scaled_more(float (&x)[COUNT][8], const scaled_params &p, int64_t column) {
#pragma unroll
    for (int i = 0; i < COUNT * 8; i++) x[i / 8][i % 8] *= p.alpha;
    if (p.bias)
#pragma unroll
        for (int i = 0; i < COUNT * 4; i++) {
            const int64_t at = column + i / 4 * 16 + i / 2 % 2 * 8 + i % 2;
            const float bias = at < p.b.rows ? scaled_load(p.bias_type, p.bias, at) : 0;
            x[i / 4][i / 2 % 2 * 4 + i % 2] += bias, x[i / 4][i / 2 % 2 * 4 + 2 + i % 2] += bias;
        }
    if (p.activation) matmul_activate(x, p.activation);
}

template <class O, class Tile>
DEVICE void scaled_end(const scaled_sm90_params &s, const float (&total)[Tile::N / 2], int first_row, int column,
                       int group, uint32_t memory) {
    using Held = matmul_held<O>;
    using Bits = typename O::bits;
    enum {
        WIDTH = 128 / Held::BYTES,
        PIECE = 16 / Held::BYTES,
        TURN = 16 * 128,
        SOME = 32 /* columns at a time, for which registers are left */
    };
    const scaled_params &p = s.of;
    const int lane = thread_index() % WARP, warp = group * 4 + thread_index() % WARPGROUP / WARP,
              row = first_row + warp * 16 + lane / 8;
    const uint32_t turn = memory + warp * TURN;
    Bits *const to = (Bits *)p.d + row * p.d_row + column + lane % 8 * PIECE;
    const int64_t left = p.b.rows - column - lane % 8 * PIECE;
#pragma unroll 1
    for (int at = 0; at < Tile::N && column + at < p.b.rows; at += SOME) {
        float x[SOME / 16][8];
#pragma unroll
        for (int b = 0; b < Tile::N; b += SOME)
            if (b == at)
#pragma unroll
                for (int i = 0; i < SOME / 2; i++) x[i / 8][i % 8] = total[b / 2 + i];
        scaled_more(x, p, column + at + lane % 4 * 2);
#pragma unroll
        for (int i = 0; i < SOME / 16; i++) Held::put(turn, at % WIDTH + i * 16, x[i]);
        const int box = at - at % WIDTH; /* the first column of what is stored at once */
        if (at + SOME < box + WIDTH && column + at + SOME < p.b.rows) continue;
        sync_warp();
        rows_store_box(to + box, p.d_row, turn, left - box, s.whole, [&](int q) { return row + q < p.a.rows; });
        sync_warp(); /* the turn is free */
    }
}

/* Every tile of this block, as its first row and what it multiplies. */
template <class Tile, class Each> DEVICE void scaled_each(const scaled_params &p, const Each &each) {
    const int pairs = (int)((p.a.rows + ROWS_SM90_PAIR * ROWS_SM90_ROWS - 1) / (ROWS_SM90_PAIR * ROWS_SM90_ROWS)),
              right = (int)((p.b.rows + Tile::N - 1) / Tile::N), rank = cluster_rank(),
              clusters = (int)block_count() / ROWS_SM90_PAIR;
#pragma unroll 1
    for (int unit = (int)block_index() / ROWS_SM90_PAIR; unit < pairs * right; unit += clusters) {
        const rows_place at = rows_place_of(unit, pairs, right, Tile::N);
        each((at.pair * ROWS_SM90_PAIR + rank) * ROWS_SM90_ROWS,
             rows_task{ at.column, 0, (p.k + Tile::Pipe::STEP - 1) / Tile::Pipe::STEP, rank, true });
    }
}

/* Operands that do not begin at 16 bytes, element by element, by the whole warpgroup, and scales. */
template <class Tile> DEVICE void scaled_by_hand(const scaled_params &p, typename Tile::Pipe &pipe) {
    using Pipe = typename Tile::Pipe;
    const matmul_operand a = { p.a.data, 0, p.a.row, 1 }, b = { p.b.data, 0, p.b.row, 1 };
    scaled_each<Tile>(p, [&](int row, const rows_task &task) {
        const scaled_scales<Tile> scales(p, row, task.column);
        for (int step = 0; step < task.steps; step++, pipe.advance()) {
            const int along = step * Pipe::STEP;
            barrier_wait(pipe.empty(), pipe.parity ^ 1);
            matmul_hand_in<Pipe, uint8_t, false>(pipe.x(), Pipe::X_BYTES, a, row, p.a.rows, along, p.k, 0);
            matmul_hand_in<Pipe, uint8_t, false>(pipe.y(), Pipe::Y_BYTES, b, task.column, p.b.rows, along, p.k, 0);
            if (thread_index() < WARP) scales.bring(pipe.more(), along);
            copies_see();
            sync_some(3, WARPGROUP);
            if (thread_index() <= WARP) barrier_come(pipe.full());
        }
    });
}

template <class Tile> DEVICE void scaled_sm90(const scaled_sm90_params &s) {
    using Pipe = typename Tile::Pipe;
    const scaled_params &p = s.of;
    Pipe pipe = { shared_address(launch_memory()) };
    const int group = thread_index() / WARPGROUP - 1, warp = thread_index() / WARP;
    launch_next();
    if (thread_index() == 0) {
        tensor_map_fetch(&s.a);
        tensor_map_fetch(&s.b);
        pipe.make_barriers(WARP);
    }
    sync_warp();
    cluster_meet();
    launch_wait();
    if (group < 0) {
        registers_fewer<56>();
        if (!s.boxes) {
            scaled_by_hand<Tile>(p, pipe);
            pipe.drain();
        } else if (thread_index() == 0) {
            scaled_each<Tile>(p, [&](int row, const rows_task &task) {
                rows_produce_boxes<Pipe, false>(pipe, &s.a, row, &s.b, task);
            });
            pipe.drain();
        } else if (warp > 0) {
            int turn = 1;
            scaled_each<Tile>(p, [&](int row, const rows_task &task) {
                const scaled_scales<Tile> scales(p, row, task.column);
                for (int step = 0; step < task.steps; step++, pipe.advance(), turn = turn % 3 + 1) {
                    if (turn != warp) continue;
                    barrier_wait(pipe.empty(), pipe.parity ^ 1);
                    scales.bring(pipe.more(), step * Pipe::STEP);
                    barrier_come(pipe.full());
                }
            });
        }
    } else {
        registers_more<224>();
        scaled_each<Tile>(p, [&](int row, const rows_task &task) {
            if (row + group * 64 >= p.a.rows) return rows_pass(pipe, task);
            float total[Tile::N / 2];
            scaled_multiply<Tile>(total, pipe, task, group);
            if (p.out_type == SCALED_AS_F32)
                scaled_end<f32, Tile>(s, total, row, task.column, group, pipe.memory);
            else if (p.out_type == SCALED_AS_BF16)
                scaled_end<bf16, Tile>(s, total, row, task.column, group, pipe.memory);
            else
                scaled_end<f16, Tile>(s, total, row, task.column, group, pipe.memory);
        });
    }
    sync_warp();
    cluster_meet(); /* a block stays while the other may still copy to it */
}

/* The parts of a name: types, columns, elements of a part; b for blocks of 128 rows of b, or r. */
#define TILE(name, T, N, PART, b, BLOCKS) \
    ENTRY_AHEAD(matmul_scaled_sm90_##name##_##N##_##PART##b, MATMUL_SM90_THREADS, 1, scaled_sm90_params) { \
        scaled_sm90<scaled_tile_of<T, N, PART, BLOCKS>>(p); \
    }
#define TILES(name, T) \
    TILE(name, T, 256, 128, b, true) \
    TILE(name, T, 128, 128, b, true) TILE(name, T, 128, 128, r, false) TILE(name, T, 128, 32, r, false)
TILES(e4m3_e4m3, e4m3_e4m3)
TILES(e4m3_e5m2, e4m3_e5m2)
TILES(e5m2_e4m3, e5m2_e4m3)
TILES(i8_i8, int8_t)
