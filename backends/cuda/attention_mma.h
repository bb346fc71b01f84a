/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by the tensor cores of sm_80 and later: bf16 and f16, d up to 256.
 *
 * A block has 64 queries of a head, each of its 4 warps 16 of them, with their sums of o, a tile of scores, and up to 128 columns of q in registers. Tiles of
 * keys and of values are copied in turns, each into one of two stages, while the other operand's products go on. Rows lie in panels of 128 bytes in which piece
 * c of row r is at c ^ r % 8, so that neither copies nor matrices meet in a bank. Keys go from the last to the first.
 *
 * NOTES. Floors: 4 flops for each visible pair and column over the rate of mma.sync, on an H200 about 62 % of wgmma's; an exponential for each pair, 16 a clock
 * and processor.
 * Measured there, bf16, 16384 tokens, TFLOP/s: 140 at d 128, s 4096, full; 157, 136 and 123 at d 64, 128 and 256, causal. Beyond d 64 registers spill. */
#ifndef TRINE_CUDA_ATTENTION_MMA_H
#define TRINE_CUDA_ATTENTION_MMA_H

#include <tile/mma.h>

#include "attention_rows.h"
#include "attention_tile.h"

/* Where piece c of 16 bytes of a row is, in panels of so many rows. */
template <int ROWS> DEVICE int attention_piece(int row, int c) { return c / 8 * ROWS * 128 + row * 128 + ((c % 8 ^ row % 8) << 4); }

/* Starts to copy ROWS rows of a head; those beyond `count`, and columns beyond the last, are 0. */
template <class T, int D, int ROWS>
DEVICE void attention_copy(char *to, const attention_tensor &t, int batch, int first, int count, int head, int columns, bool wide) {
    const typename T::bits *const from = attention_row<T>(t, batch, first, head);
#pragma unroll 1
    for (int i = thread_index(); i < ROWS * (D / 8); i += ATTENTION_MMA_THREADS) {
        const int row = i / (D / 8), column = i % (D / 8) * 8, left = row < count ? columns - column : 0, bytes = left <= 0 ? 0 : left < 8 ? 2 * left : 16;
        char *const place = to + attention_piece<ROWS>(row, column / 8);
        const typename T::bits *const at = from + row * t.token + column;
        if (wide)
            copy_bytes<16>(place, bytes > 0 ? at : nullptr, bytes);
        else
            for (int e = 0; e < 8; e++) ((typename T::bits *)place)[e] = 2 * e < bytes ? at[e] : 0;
    }
}

/* 16 rows and 16 columns from `row` and piece `c` on, as the left operand; or as a right one, whose lanes are the rows, or the columns if they are ACROSS. */
template <int ROWS> DEVICE void attention_left(uint32_t (&r)[4], const char *from, int row, int c) {
    const int lane = thread_index() % WARP;
    load_matrices<false>(r, from + attention_piece<ROWS>(row + lane / 8 % 2 * 8 + lane % 8, c + lane / 16));
}
template <int ROWS, bool ACROSS> DEVICE void attention_right(uint32_t (&r)[4], const char *from, int row, int c) {
    const int lane = thread_index() % WARP, low = lane / 8 % 2, high = lane / 16;
    load_matrices<ACROSS>(r, from + attention_piece<ROWS>(row + (ACROSS ? low : high) * 8 + lane % 8, c + (ACROSS ? high : low)));
}

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

/* q's fragments: held, or read again from shared memory for each tile. */
template <int D, bool HELD> struct attention_left_operand {
    uint32_t r[HELD ? D / 16 : 1][4];
    DEVICE void load(const char *q) {
#pragma unroll
        for (int i = 0; i < (HELD ? D / 16 : 0); i++) attention_left<ATTENTION_SIDE>(r[i], q, thread_index() / WARP * 16, 2 * i);
    }
    DEVICE const uint32_t (&get(const char *q, int i))[4] {
        if constexpr (HELD) return r[i];
        attention_left<ATTENTION_SIDE>(r[0], q, thread_index() / WARP * 16, 2 * i);
        return r[0];
    }
};

/* s = q k^T, 16 rows of the warp by KEYS. */
template <class T, int D, int KEYS, bool HELD>
DEVICE void attention_mma_scores(float (&s)[KEYS / 2], attention_left_operand<D, HELD> &left, const char *q, const char *k) {
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) s[i] = 0;
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        const uint32_t(&a)[4] = left.get(q, i);
#pragma unroll
        for (int key = 0; key < KEYS; key += 16) {
            uint32_t b[4];
            attention_right<KEYS, false>(b, k, key, 2 * i);
            attention_multiply<T>(s + key / 2, a, b);
        }
    }
}

/* o += s v, by D columns of v from piece `first` on. */
template <class T, int D, int KEYS> DEVICE void attention_mma_values(float (&o)[D / 2], const float (&s)[KEYS / 2], const char *v, int first) {
    uint32_t w[KEYS / 4];
    attention_pack<T>(w, s);
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        const uint32_t a[4] = { w[key / 4], w[key / 4 + 1], w[key / 4 + 2], w[key / 4 + 3] };
#pragma unroll
        for (int c = 0; c < D / 8; c += 2) {
            uint32_t b[4];
            attention_right<KEYS, true>(b, v, key, first + c);
            attention_multiply<T>(o + c * 4, a, b);
        }
    }
}

template <class T, int D, int KEYS> DEVICE void attention_mma(const attention_params &p) {
    enum { TILE = KEYS * 2 * D };
    char *const q = launch_memory(), *const k = q + ATTENTION_SIDE * 2 * D, *const v = k + 2 * TILE;
    const attention_place at = attention_place_of(p.at, p.tiles, p.columns, D, p.at.h);
    const int row = at.first + thread_index() / WARP * 16 + thread_index() % WARP / 4, head = at.head / p.at.group, count = p.at.sq - at.first;
    const attention_sight first = attention_keys_of(p.at, at.first), last = attention_keys_of(p.at, at.first + lesser(count, ATTENTION_SIDE) - 1);
    attention_rows rows = attention_rows_of(p.at, row);
    attention_left_operand<D, D <= 128> left;
    float o[D / 2] = {};
    const int tiles = (greater(last.high - first.low, 0) + KEYS - 1) / KEYS;
    const auto copy = [&](char *to, const attention_tensor &t, int tile) {
        const int key = first.low + tile * KEYS;
        if (tile >= 0) attention_copy<T, D, KEYS>(to + tile % 2 * TILE, t, at.batch, key, last.high - key, head, p.at.d, p.wide);
        copy_commit();
    };
    if (tiles > 0) attention_copy<T, D, ATTENTION_SIDE>(q, p.q, at.batch, at.first, count, at.head, p.at.d, p.wide);
    copy(k, p.k, tiles - 1);
    copy(v, p.v, tiles - 1);
#pragma unroll 1
    for (int tile = tiles - 1; tile >= 0; tile--) {
        const int key = first.low + tile * KEYS;
        float s[KEYS / 2], factor[2];
        copy_wait<1>();
        sync_block();
        if (tile == tiles - 1) left.load(q);
        copy(k, p.k, tile - 1);
        attention_mma_scores<T, D, KEYS>(s, left, q, k + tile % 2 * TILE);
        if (p.bends) attention_bend(s, p.bend);
        if (key < last.low || key + KEYS > first.high) attention_hide(s, rows, key);
        attention_soften(s, rows, factor, p.spread);
        if (attention_changes(rows, factor)) attention_scale(o, factor);
        copy_wait<1>();
        sync_block();
        copy(v, p.v, tile - 1);
        attention_mma_values<T, D, KEYS>(o, s, v + tile % 2 * TILE, 0);
    }
    attention_end<T, D>(p, at.batch, at.head, row, o, rows);
}

#endif
