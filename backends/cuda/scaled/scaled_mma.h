/* SPDX-License-Identifier: Apache-2.0 */
/* Products with scales of blocks by the tensor cores of sm_80 and later: a block has a tile of 64 rows and 128 columns,
 * a warp 32 by 32 of it.
 *
 * Elements of all types are f16 exactly, and are kept as such; rows of a stage are pieces of 16 bytes whose place is
 * turned by the row's number, so that eight rows' pieces lie in eight banks. Where blocks are multiples of 16 elements
 * a step of 32 has halves whose sums are scaled on their own; otherwise it ends with the part of k. */
#ifndef TRINE_CUDA_SCALED_MMA_H
#define TRINE_CUDA_SCALED_MMA_H

#include <tile/half.h>
#include <tile/mma.h>

#include "backends/simt/scaled/matmul_scaled_tiles.inl.h"

enum {
    SCALED_WARP = 32, /* rows and columns of a warp */
    SCALED_HALF = 16, /* elements of k of an instruction */
    SCALED_HALVES = SCALED_DEPTH / SCALED_HALF,
    SCALED_LANES = SCALED_ROWS + SCALED_COLUMNS
};

struct scaled_stage {
    packed<uint32_t, 4> a[SCALED_ROWS * SCALED_PIECES], b[SCALED_COLUMNS * SCALED_PIECES];
    float scale[SCALED_HALVES][SCALED_LANES];
};

DEVICE int scaled_turned(int row, int piece) {
    return row * SCALED_PIECES + (piece ^ (row >> 1 & (SCALED_PIECES - 1)));
}

/* Two bytes of a word as the lower bytes of halves. */
DEVICE uint32_t scaled_apart(uint32_t word, int pair) {
    const uint32_t two = word >> 16 * pair;
    return (two & 0xffu) | (two & 0xff00u) << 8;
}

/* Eight elements as f16, in which whole numbers are the last bits of 1024. */
DEVICE packed<uint32_t, 4> scaled_f16(const scaled_side &s, const scaled_piece &raw) {
    packed<uint32_t, 4> h;
    const uint32_t none = (uint32_t)(0x6400 + s.none) * 0x10001u;
    if (s.kind == SCALED_IS_E4M3) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint16_t codes = (uint16_t)(raw.word[i / 2] >> i % 2 * 16);
            if constexpr (float8_units<3>::THERE)
                h.v[i] = float8_units<3>::f16_pair(codes);
            else
                h.v[i] = f16::pair(e4m3::get((uint8_t)codes), e4m3::get((uint8_t)(codes >> 8)));
        }
    } else if (s.kind == SCALED_IS_E5M2) {
#pragma unroll
        for (int i = 0; i < 4; i++) h.v[i] = scaled_apart(raw.word[i / 2], i % 2) << 8;
    } else if (s.kind == SCALED_IS_BYTE) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            h.v[i] = f16_difference(scaled_apart(raw.word[i / 2] ^ s.flip, i % 2) | 0x64006400u, none);
    } else {
        const uint32_t word = raw.word[0] ^ s.flip;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t pair = word >> 8 * i, low = (pair & 0xfu) | (pair << 12 & 0xf0000u);
            if (s.kind == SCALED_IS_HALF)
                h.v[i] = f16_difference(low | 0x64006400u, none);
            else
                h.v[i] = f16_product((low & 0x70007u) << 9 | (low & 0x80008u) << 12, 0x74007400u);
        }
    }
    return h;
}

/* A step of the whole depth, or of a part of k; do sums end with its halves? */
struct scaled_stride {
    scaled_step step;
    bool regular;

    DEVICE scaled_stride(const scaled_params &p) : step(p, 0) {
        regular = (p.a.block.by % SCALED_HALF == 0 || p.a.block.by >= p.k) &&
                  (p.b.block.by % SCALED_HALF == 0 || p.b.block.by >= p.k);
        if (regular) step.end = step.at + SCALED_DEPTH < p.k ? step.at + SCALED_DEPTH : p.k;
    }
    DEVICE void advance(const scaled_params &p) {
        if (!regular) {
            step.advance(p);
            return;
        }
        step.at = step.end;
        step.end = step.at + SCALED_DEPTH < p.k ? step.at + SCALED_DEPTH : p.k;
    }
    DEVICE bool ends(const scaled_params &p, int half) const {
        if (!regular) return half == SCALED_HALVES - 1 && step.last();
        const int32_t to = step.at + (half + 1) * SCALED_HALF;
        return to >= p.k || to % 128 == 0 || multiple(to, p.a.block) || multiple(to, p.b.block);
    }
    /* Where the scales of a half are those of its elements. */
    DEVICE int32_t place(const scaled_params &p, int half) const {
        const int32_t at = step.at + (regular ? half * SCALED_HALF : 0);
        return at < p.k ? at : p.k - 1;
    }

  private:
    static DEVICE bool multiple(int32_t n, const simt_divisor &d) {
        return (int64_t)quotient((uint32_t)n, d) * d.by == n;
    }
};

/* What a thread brings to a stage: pieces, and the scales of a row. */
struct scaled_brought {
    scaled_fetched pieces;
    float scale[SCALED_HALVES] = {};
    int64_t line;

    template <class Rows> DEVICE scaled_brought(const scaled_params &p, const Rows &rows, int64_t column) {
        const int lane = thread_index();
        line = lane < SCALED_ROWS ? scaled_line(p.a, rows(lane))
                                  : scaled_line(p.b, scaled_row_within(p.b, column + lane - SCALED_ROWS));
    }
    template <class Rows>
    DEVICE void fetch(const scaled_params &p, const Rows &rows, int64_t column, const scaled_stride &stride) {
        pieces.fetch(p, rows, column, stride.step);
        if (thread_index() >= SCALED_LANES) return;
#pragma unroll
        for (int h = 0; h < SCALED_HALVES; h++)
            if (stride.ends(p, h))
                scale[h] = scaled_scale(thread_index() < SCALED_ROWS ? p.a : p.b, line, stride.place(p, h));
    }
    DEVICE void keep(const scaled_params &p, scaled_stage &stage) const {
        const int row = thread_index() / SCALED_PIECES, piece = thread_index() % SCALED_PIECES;
        stage.a[scaled_turned(row, piece)] = scaled_f16(p.a, pieces.a);
#pragma unroll
        for (int f = 0; f < SCALED_FETCHES; f++)
            stage.b[scaled_turned(row + f * SCALED_LINES, piece)] = scaled_f16(p.b, pieces.b[f]);
        if (thread_index() >= SCALED_LANES) return;
#pragma unroll
        for (int h = 0; h < SCALED_HALVES; h++) stage.scale[h][thread_index()] = scale[h];
    }
};

using scaled_tile = float[2][4][4]; /* of a warp, what a thread has: 16 rows, 8 columns, and as warp_multiply() says */

/* A warp's products of half a stage. */
DEVICE void scaled_products(scaled_tile &sum, const scaled_stage &stage, int down, int right, int half) {
    const int index = thread_index() % WARP / 8, row = thread_index() % 8, k = half * 2;
    uint32_t a[2][4], b[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
        load_matrices<false>(a[i], &stage.a[scaled_turned(down + i * 16 + index % 2 * 8 + row, k + index / 2)]);
#pragma unroll
    for (int j = 0; j < 2; j++)
        load_matrices<false>(b[j], &stage.b[scaled_turned(right + j * 16 + index / 2 * 8 + row, k + index % 2)]);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) warp_multiply(f16(), sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
}

/* Adds the scaled sums to the totals, and clears them. */
DEVICE void scaled_promote(scaled_tile &total, scaled_tile &sum, const float (&scale)[SCALED_LANES], int down,
                           int right) {
    const int row = down + thread_index() % WARP / 4, column = SCALED_ROWS + right + thread_index() % 4 * 2;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const float low = scale[column + j * 8], high = scale[column + j * 8 + 1];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float factor = scale[row + i * 16 + e / 2 * 8] * (e % 2 ? high : low);
                total[i][j][e] = fused(sum[i][j][e], factor, total[i][j][e]);
                sum[i][j][e] = 0;
            }
    }
}

/* The block's products of the rows of a that `rows` tells, and of those of b from `column` on: each thread's go to
 * end(row, column, sum), in the tile. */
template <class Rows, class End>
DEVICE void scaled_mma(const scaled_params &p, const Rows &rows, int64_t column, const End &end) {
    SHARED scaled_stage stage[2];
    const int warp = thread_index() / WARP, down = warp / (SCALED_COLUMNS / SCALED_WARP) * SCALED_WARP,
              right = warp % (SCALED_COLUMNS / SCALED_WARP) * SCALED_WARP;
    scaled_tile total = {}, sum = {};
    scaled_stride stride(p);
    scaled_brought brought(p, rows, column);
    if (p.k > 0) brought.fetch(p, rows, column, stride);
    for (int now = 0; stride.step.at < p.k; now ^= 1) {
        brought.keep(p, stage[now]);
        const scaled_stride here = stride;
        stride.advance(p);
        if (stride.step.at < p.k) brought.fetch(p, rows, column, stride);
        sync_block();
#pragma unroll
        for (int h = 0; h < SCALED_HALVES; h++) {
            scaled_products(sum, stage[now], down, right, h);
            if (here.ends(p, h)) scaled_promote(total, sum, stage[now].scale[h], down, right);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                end(down + i * 16 + e / 2 * 8 + thread_index() % WARP / 4,
                    right + j * 8 + thread_index() % 4 * 2 + e % 2, total[i][j][e]);
}

#endif
