/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by the tensor cores of sm_80 and later: bf16 and f16, d up to 256.
 *
 * Each of a block's 4 warps has 32 queries of a head, 16 beyond 128 columns, with their sums of o and a tile of scores in registers: what is read of keys and
 * values serves two products. While scores of 64 keys are found their values are copied, while those are multiplied the next keys. Rows lie in panels of 128
 * bytes in which piece c of row r is at c ^ r % 8, so that neither copies nor matrices meet in a bank. Keys go from the last to the first.
 *
 * NOTES. Floors: 4 flops for each visible pair and column over the rate of mma.sync, on an H200 about 62 % of wgmma's; an exponential for each pair, 16 a clock
 * and processor; 128 bytes a clock of shared memory, 32 flops a byte with 32 rows to a warp, 16 with 16.
 * Measured there, bf16, 16384 tokens, s 4096, full and causal, TFLOP/s at d 64, 128 and 256: 302, 334, 326 and 279, 320, 322. With 16 rows to a warp, an address
 * for each matrix read and for each piece copied, it was 159, 148 and 135: registers spilt. One offset for all reads, from which a matrix is a flip of bits and
 * a constant away, freed them; 32 rows then gained 10 % (d 64) and 20 (d 128); no question before o is scaled 8 (d 64). Two stages gain 4 more at d 128, but
 * lose a block of two where shared memory is 164 KB. Values read one step ahead by hand gain 4 at d 128. */
#ifndef TRINE_CUDA_ATTENTION_MMA_H
#define TRINE_CUDA_ATTENTION_MMA_H

#include <tile/mma.h>

#include "attention_rows.h"
#include "attention_tile.h"

/* Where piece c of 16 bytes of a row is, in panels of so many rows. */
template <int ROWS> DEVICE int attention_piece(int row, int c) { return c / 8 * ROWS * 128 + row * 128 + ((c % 8 ^ row % 8) << 4); }

/* Copies ROWS rows of a head, of D columns; rows beyond `count`, and columns beyond the last, are 0. A thread has the same pieces of every so many rows. */
template <class T, int D, int ROWS, int THREADS = ATTENTION_MMA_THREADS> struct attention_copies {
    using Bits = typename T::bits;
    enum { PIECES = D < 128 ? D / 8 : 16, STEP = THREADS / PIECES, COUNT = ROWS / STEP };
    const Bits *at; /* the thread's first piece in row 0 of the head */
    int64_t step;   /* from row to row */
    int row, place, columns;
    bool wide;

    DEVICE attention_copies(const attention_tensor &t, int batch, int head, int d, bool is_wide) {
        const int piece = thread_index() % PIECES;
        row = thread_index() / PIECES, place = attention_piece<ROWS>(row, piece), columns = d - piece * 8, wide = is_wide;
        at = attention_row<T>(t, batch, 0, head) + piece * 8, step = t.token;
    }
    DEVICE void copy(char *to, int first, int count) const {
#pragma unroll
        for (int c = 0; c < D / 8; c += PIECES) {
            const Bits *from = at + (first + row) * step + c * 8;
            const int left = columns - c * 8, elements = left < 0 ? 0 : left < 8 ? left : 8;
            char *const there = to + place + c / 8 * ROWS * 128;
            if (wide) {
#pragma unroll
                for (int i = 0; i < COUNT; i++, from += STEP * step) copy_bytes<16>(there + i * STEP * 128, from, row + i * STEP < count ? elements * 2 : 0);
            } else {
#pragma unroll 1
                for (int i = 0; i < COUNT; i++, from += STEP * step)
                    for (int e = 0; e < 8; e++) ((Bits *)(there + i * STEP * 128))[e] = e < elements && row + i * STEP < count ? from[e] : Bits(0);
            }
        }
    }
};

/* Where a thread reads its row of the matrices of 16 rows and 16 columns in panels of ROWS, from `row` and `column` on: as the left operand or as the right one,
 * whose lanes are the rows, or the columns if they are ACROSS. Steps of columns flip bits of the piece or change the panel. */
template <int ROWS, bool ACROSS> struct attention_view {
    int base;

    DEVICE attention_view(bool is_left, int row = 0, int column = 0) {
        const int lane = thread_index() % WARP, low = lane / 8 % 2, high = lane / 16;
        base = attention_piece<ROWS>(row + (is_left != ACROSS ? low : high) * 8 + lane % 8, column / 8 + (is_left != ACROSS ? high : low));
    }
    DEVICE void load(uint32_t (&r)[4], const char *from, int row, int column) const {
        load_matrices<ACROSS>(r, from + (base ^ column / 16 % 4 << 5) + column / 64 * (ROWS * 128) + row * 128);
    }
};

/* The product of 16 by 16 by 16 into 8 sums. */
template <class T> DEVICE void attention_multiply(float *sum, const uint32_t (&a)[4], const uint32_t (&b)[4]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float four[4];
#pragma unroll
        for (int e = 0; e < 4; e++) four[e] = sum[half * 4 + e];
        warp_multiply(T(), four, a, b[half * 2], b[half * 2 + 1]);
#pragma unroll
        for (int e = 0; e < 4; e++) sum[half * 4 + e] = four[e];
    }
}

/* Fragments of q, 16 R rows of ROWS from the warp's first on: held, or read again from shared memory for each tile. */
template <int D, int ROWS, int R, bool HELD> struct attention_left_operand {
    const char *from;
    attention_view<ROWS, false> view;
    uint32_t held[HELD ? D / 16 : 1][R][4];

    DEVICE attention_left_operand(const char *q) : from(q), view(true, thread_index() / WARP * R * 16) {}
    DEVICE void read(uint32_t (&r)[R][4], int column) const {
#pragma unroll
        for (int part = 0; part < R; part++) view.load(r[part], from, part * 16, column);
    }
    DEVICE void load() {
#pragma unroll
        for (int i = 0; i < (HELD ? D / 16 : 0); i++) read(held[i], i * 16);
    }
    DEVICE const uint32_t (&get(int i))[R][4] {
        if constexpr (HELD) return held[i];
        read(held[0], i * 16);
        return held[0];
    }
};

/* s = q k^T, 16 R rows of the warp by KEYS. */
template <class T, int D, int KEYS, int R, class Left> DEVICE void attention_mma_scores(float (&s)[R][KEYS / 2], Left &left, const char *k) {
    const attention_view<KEYS, false> right(false);
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) s[r][i] = 0;
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        const uint32_t(&a)[R][4] = left.get(i);
#pragma unroll
        for (int key = 0; key < KEYS; key += 16) {
            uint32_t b[4];
            right.load(b, k, key, i * 16);
#pragma unroll
            for (int r = 0; r < R; r++) attention_multiply<T>(s[r] + key / 2, a[r], b);
        }
    }
}

/* o += s v, by D columns of v, which are read one step ahead. */
template <class T, int D, int KEYS, int R> DEVICE void attention_mma_values(float (&o)[R][D / 2], const float (&s)[R][KEYS / 2], const char *v) {
    const attention_view<KEYS, true> right(false);
    uint32_t b[2][4];
    right.load(b[0], v, 0, 0);
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        uint32_t a[R][4];
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int i = 0; i < 4; i++) a[r][i] = T::pair(s[r][key / 2 + 2 * i], s[r][key / 2 + 2 * i + 1]);
#pragma unroll
        for (int column = 0; column < D; column += 16) {
            const int now = column / 16 % 2;
            if (column + 16 < D)
                right.load(b[now ^ 1], v, key, column + 16);
            else if (key + 16 < KEYS)
                right.load(b[now ^ 1], v, key + 16, 0);
#pragma unroll
            for (int r = 0; r < R; r++) attention_multiply<T>(o[r] + column / 2, a[r], b[now]);
        }
    }
}

template <class T, int D, int KEYS, int R> DEVICE void attention_mma(const attention_params &p) {
    enum { ROWS = ATTENTION_SIDE * R };
    char *const q = launch_memory(), *const k = q + ROWS * 2 * D, *const v = k + KEYS * 2 * D;
    const attention_place at = attention_place_of(p.at, p.tiles, p.columns, ROWS, D, p.at.h);
    const int row = at.first + thread_index() / WARP * 16 * R + thread_index() % WARP / 4, head = at.head / p.at.group, count = p.at.sq - at.first;
    const attention_sight first = attention_keys_of(p.at, at.first), last = attention_keys_of(p.at, at.first + lesser(count, ROWS) - 1);
    const int tiles = (greater(last.high - first.low, 0) + KEYS - 1) / KEYS;
    const attention_copies<T, D, KEYS> keys(p.k, at.batch, head, p.at.d, p.wide), values(p.v, at.batch, head, p.at.d, p.wide);
    attention_left_operand<D, ROWS, R, D == 64> left(q);
    attention_rows rows[R];
    float o[R][D / 2] = {};
#pragma unroll
    for (int r = 0; r < R; r++) rows[r] = attention_rows_none();
    if (tiles > 0) {
        const int key = first.low + (tiles - 1) * KEYS;
        attention_copies<T, D, ROWS>(p.q, at.batch, at.head, p.at.d, p.wide).copy(q, at.first, count);
        keys.copy(k, key, last.high - key);
        copy_commit();
    }
#pragma unroll 1
    for (int tile = tiles - 1; tile >= 0; tile--) {
        const int key = first.low + tile * KEYS;
        float s[R][KEYS / 2];
        copy_wait<0>();
        sync_block(); /* keys are there, and nobody reads values any more */
        if (tile == tiles - 1) left.load();
        values.copy(v, key, last.high - key);
        copy_commit();
        attention_mma_scores<T, D, KEYS>(s, left, k);
        if (p.bends) {
#pragma unroll
            for (int r = 0; r < R; r++) attention_bend(s[r], p.bend);
        }
        if (key < last.low || key + KEYS > first.high) { /* sights are found here so that they need no registers elsewhere */
#pragma unroll
            for (int r = 0; r < R; r++) attention_see(rows[r], p.at, row + r * 16), attention_hide(s[r], rows[r], key);
        }
        copy_wait<0>();
        sync_block(); /* the other way round */
        if (tile > 0) keys.copy(k, key - KEYS, KEYS);
        copy_commit();
#pragma unroll
        for (int r = 0; r < R; r++) {
            float factor[2];
            attention_soften(s[r], rows[r], factor, p.spread);
            attention_scale(o[r], factor);
        }
        attention_mma_values<T, D, KEYS>(o, s, v);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        attention_see(rows[r], p.at, row + r * 16);
        attention_end<T, D>(p, at.batch, at.head, row + r * 16, o[r], rows[r]);
    }
}

#endif
