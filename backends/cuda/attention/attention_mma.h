/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by the tensor cores of sm_80 and later: bf16 and f16, d up to 256.
 *
 * Each of a block's 4 warps has 32 queries of a head, 16 beyond 128 columns, with their sums of o and a tile of scores
 * in registers: what is read of keys and values serves two products. Beyond 64 columns values are copied while scores
 * of 64 keys are found, and the next keys while those are multiplied; up to 64 there is room for two tiles. Rows lie in
 * panels of 128 bytes in which piece c of row r is at c ^ r % 8, so that neither copies nor matrices meet in a bank.
 * Keys go from the last to the first.
 *
 * NOTES. Floors: 4 flops for each visible pair and column over the rate of mma.sync, 637 TFLOP/s on an H200; an
 * exponential for each pair, 16 a clock and SM; 128 bytes a clock of shared memory, 32 flops a byte with 32 rows to a
 * warp, 16 with 16.
 * Measured there, bf16, 16384 tokens, s 4096, full and causal, TFLOP/s at d 64, 128 and 256: 330, 383, 314 and 310,
 * 356, 316. With 16 rows to a warp, an address for each matrix read and for each piece copied, it was 159, 148 and 135:
 * registers spilt. One offset for all reads, from which a matrix is a flip of bits and a constant away, freed them; 32
 * rows then gained 10 % (d 64) and 20 (d 128). Where a warp has 32 rows, o scaled only when it must be gained 12 % (d
 * 128) and 2 (d 64), two tiles 4 (d 64), q prefetched and copies without questions 2 and 5; at d 256, where a warp has
 * 16, these lost 2 to 5. Weights found between products gained 1 to 2. Two tiles gain nothing more at d 128, and would
 * lose a block of two where shared memory is 164 KB; tiles of 32 or 48 keys lost 4. */
#ifndef TRINE_CUDA_ATTENTION_MMA_H
#define TRINE_CUDA_ATTENTION_MMA_H

#include <tile/mma.h>

#include "attention_rows.h"
#include "attention_tile.h"

/* Where piece c of 16 bytes of a row is, in panels of so many rows. */
template <int ROWS> DEVICE int attention_piece(int row, int c) {
    return c / 8 * ROWS * 128 + row * 128 + ((c % 8 ^ row % 8) << 4);
}

/* Copies ROWS rows of a head, of D columns; rows beyond `count`, and columns beyond the last, are 0. A thread has the
 * same pieces of every so many rows. */
template <class T, int D, int ROWS, int THREADS = ATTENTION_MMA_THREADS> struct attention_copies {
    using Bits = typename T::bits;
    enum { PIECES = D < 128 ? D / 8 : 16, STEP = THREADS / PIECES, COUNT = ROWS / STEP };
    const Bits *at; /* the thread's first piece in row 0 of the head */
    int64_t step;   /* from row to row */
    int row, place, columns;
    bool wide, whole; /* aligned; and all columns are there */

    DEVICE attention_copies(const attention_tensor &t, int batch, int head, int d, bool is_wide) {
        const int piece = thread_index() % PIECES;
        row = thread_index() / PIECES, place = attention_piece<ROWS>(row, piece), columns = d - piece * 8,
        wide = is_wide, whole = is_wide && d == D;
        at = attention_row<T>(t, batch, 0, head) + piece * 8, step = t.token;
    }

    /* At the edges, or where rows are not aligned. */
    DEVICE void copy_part(char *to, const Bits *from, int count) const {
#pragma unroll 1
        for (int c = 0; c < D / 8; c += PIECES) {
            const int left = columns - c * 8, elements = left < 0 ? 0 : left < 8 ? left : 8;
            const Bits *piece = from + c * 8;
            char *const there = to + place + c / 8 * ROWS * 128;
#pragma unroll 1
            for (int i = 0; i < COUNT; i++, piece += STEP * step) {
                const int most = row + i * STEP < count ? elements : 0;
                if (wide)
                    copy_bytes<16>(there + i * STEP * 128, piece, most * 2);
                else
#pragma unroll 1
                    for (int e = 0; e < 8; e++) ((Bits *)(there + i * STEP * 128))[e] = e < most ? piece[e] : Bits(0);
            }
        }
    }
    DEVICE void copy(char *to, int first, int count) const {
        const Bits *from = at + (first + row) * step;
        if (!whole || count < ROWS) {
            copy_part(to, from, count);
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++, from += STEP * step)
#pragma unroll
            for (int c = 0; c < D / 8; c += PIECES)
                copy_bytes<16>(to + place + c / 8 * ROWS * 128 + i * STEP * 128, from + c * 8, 16);
    }
};

/* Where a thread reads its row of the matrices of 16 rows and 16 columns in panels of ROWS, from `row` and `column` on:
 * as the left operand or as the right one, whose lanes are the rows, or the columns if they are ACROSS. Steps of
 * columns flip bits of the piece or change the panel. */
template <int ROWS, bool ACROSS> struct attention_view {
    int base;

    DEVICE attention_view(bool is_left, int row = 0, int column = 0) {
        const int lane = thread_index() % WARP, low = lane / 8 % 2, high = lane / 16;
        base = attention_piece<ROWS>(row + (is_left != ACROSS ? low : high) * 8 + lane % 8,
                                     column / 8 + (is_left != ACROSS ? high : low));
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

/* Fragments of q, 16 R rows of ROWS from the warp's first on: held, or read again from shared memory for each tile, one
 * step ahead where R is 2. */
template <int D, int ROWS, int R, bool HELD> struct attention_left_operand {
    static constexpr bool IS_HELD = HELD, AHEAD = R > 1;
    enum { COUNT = HELD ? D / 16 : AHEAD ? 2 : 1 };
    const char *from;
    attention_view<ROWS, false> view;
    uint32_t held[COUNT][R][4];

    DEVICE attention_left_operand(const char *q) : from(q), view(true, thread_index() / WARP * R * 16) {}
    DEVICE void read(int i) {
#pragma unroll
        for (int r = 0; r < R; r++) view.load(held[i % COUNT][r], from, r * 16, i * 16);
    }
    DEVICE void hold() {
#pragma unroll
        for (int i = 0; i < (HELD ? D / 16 : 0); i++) read(i);
    }
    DEVICE const uint32_t (&get(int i) const)[R][4] { return held[i % COUNT]; }
};

/* s = q k^T, 16 R rows of the warp by KEYS; both are read one step ahead. */
template <class T, int D, int KEYS, int R, class Left>
DEVICE void attention_mma_scores(float (&s)[R][KEYS / 2], Left &left, const char *k) {
    const attention_view<KEYS, false> right(false);
    uint32_t b[2][4];
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) s[r][i] = 0;
    if (!Left::IS_HELD && Left::AHEAD) left.read(0);
    right.load(b[0], k, 0, 0);
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        if (!Left::IS_HELD && i + Left::AHEAD < D / 16) left.read(i + Left::AHEAD);
#pragma unroll
        for (int key = 0; key < KEYS; key += 16) {
            const int now = (i * (KEYS / 16) + key / 16) % 2;
            if (key + 16 < KEYS)
                right.load(b[now ^ 1], k, key + 16, i * 16);
            else if (i + 1 < D / 16)
                right.load(b[now ^ 1], k, 0, i * 16 + 16);
#pragma unroll
            for (int r = 0; r < R; r++) attention_multiply<T>(s[r] + key / 2, left.get(i)[r], b[now]);
        }
    }
}

/* o += w v, by D columns of v, which are read one step ahead; weight(r, i) is word i of row r of w, found 16 keys
 * ahead, between products. */
template <class T, int D, int KEYS, int R, class Weight>
DEVICE void attention_mma_values(float (&o)[R][D / 2], const Weight &weight, const char *v) {
    const attention_view<KEYS, true> right(false);
    uint32_t a[2][R][4], b[2][4];
    right.load(b[0], v, 0, 0);
#pragma unroll
    for (int i = 0; i < 4 * R; i++) a[0][i / 4][i % 4] = weight(i / 4, i % 4);
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        const int turn = key / 16 % 2;
#pragma unroll
        for (int column = 0; column < D; column += 16) {
            const int now = column / 16 % 2;
            if (column + 16 < D)
                right.load(b[now ^ 1], v, key, column + 16);
            else if (key + 16 < KEYS)
                right.load(b[now ^ 1], v, key + 16, 0);
#pragma unroll
            for (int r = 0; r < R; r++) attention_multiply<T>(o[r] + column / 2, a[turn][r], b[now]);
#pragma unroll
            for (int i = column * 4 * R / D; i < (column + 16) * 4 * R / D; i++)
                if (key + 16 < KEYS) a[turn ^ 1][i / 4][i % 4] = weight(i / 4, key / 4 + 4 + i % 4);
        }
    }
}

/* The rows' largest scores grow to `top`; sums so far are multiplied by `factor_out`, as others are to be. */
DEVICE void attention_mma_raise(attention_rows &rows, const float (&top)[2], float (&factor_out)[2], float spread) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float base = top[r] == -infinity() ? 0.0f : top[r] * spread;
        factor_out[r] = exp2_approx(fused(rows.top[r], spread, -base));
        rows.top[r] = top[r];
        rows.reach[r] = larger(rows.reach[r], magnitude(base));
        rows.sum[r] *= factor_out[r];
    }
}

/* Weights may be up to 2^8, not 1, so that the sums before seldom have to be scaled: when one of a row's scores exceeds
 * its base by more, all rows of the warp get their largest score as base. Until then no thread need know another's. */
template <int R, int N, int M>
DEVICE void attention_mma_keep_up(const float (&s)[R][N], attention_rows (&rows)[R], float (&o)[R][M], float spread) {
    const float MOST = 8;
    float top[R][2];
    bool exceeds = false;
#pragma unroll
    for (int i = 0; i < 2 * R; i++) {
        const int r = i / 2, half = i % 2;
        float x = s[r][half * 2];
#pragma unroll
        for (int j = half * 2; j < N; j += 4) x = larger(x, larger(s[r][j], s[r][j + 1]));
        top[r][half] = x;
        exceeds = exceeds || fused(x, spread, -MOST) > rows[r].top[half] * spread;
    }
    if (!any_of_warp(exceeds)) return;
#pragma unroll
    for (int r = 0; r < R; r++) {
        float factor[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float x = top[r][half];
            x = larger(x, shuffle_xor(x, 1));
            x = larger(x, shuffle_xor(x, 2));
            top[r][half] = larger(rows[r].top[half], x);
        }
        attention_mma_raise(rows[r], top[r], factor, spread);
        attention_scale(o[r], factor);
    }
}

/* Tiles of keys and their values on their way, from the last to the first. With one stage values come while scores are
 * found, and the next keys while values are multiplied; with two the next tile comes meanwhile, and the block meets
 * once for a tile. */
template <class T, int D, int KEYS, int STAGES> struct attention_mma_feed {
    enum { HALF = KEYS * 2 * D };
    const attention_copies<T, D, KEYS> keys, values;
    char *const ring;
    int first, end; /* keys */

    DEVICE attention_mma_feed(const attention_params &p, int batch, int head, char *memory, int first_key, int end_key)
        : keys(p.k, batch, head, p.at.d, p.wide), values(p.v, batch, head, p.at.d, p.wide), ring(memory),
          first(first_key), end(end_key) {}
    DEVICE char *stage(int tile) const { return STAGES == 1 ? ring : ring + tile % 2 * 2 * HALF; }
    DEVICE void copy_keys(int tile) const { keys.copy(stage(tile), first + tile * KEYS, end - first - tile * KEYS); }
    DEVICE void copy_values(int tile) const {
        values.copy(stage(tile) + HALF, first + tile * KEYS, end - first - tile * KEYS);
    }

    DEVICE void begin(int tile) const {
        copy_keys(tile);
        if (STAGES == 2) copy_values(tile);
        copy_commit();
    }
    DEVICE const char *wait_keys(int tile) const {
        copy_wait<0>();
        sync_block(); /* keys are there, and nobody reads the values before any more */
        if (STAGES == 1)
            copy_values(tile);
        else if (tile > 0)
            copy_keys(tile - 1), copy_values(tile - 1);
        copy_commit();
        return stage(tile);
    }
    DEVICE const char *wait_values(int tile) const {
        if (STAGES == 1) {
            copy_wait<0>();
            sync_block(); /* the other way round */
            if (tile > 0) copy_keys(tile - 1);
            copy_commit();
        }
        return stage(tile) + HALF;
    }
};

/* A block's tile of queries of a head. Heads go in bunches; in a bunch the last tiles, which see most under a causal
 * mask, come first. */
DEVICE attention_place attention_mma_place(const attention_params &p, int side) {
    const int planes = p.at.b * p.at.h, before = (int)(block_index() / ((int64_t)p.bunch * p.tiles)) * p.bunch;
    const int rest = (int)(block_index() - (int64_t)before * p.tiles), high = lesser(p.bunch, planes - before),
              tile = rest / high, plane = before + rest - tile * high;
    return { plane / p.at.h, plane % p.at.h, (p.tiles - 1 - tile) * side, 0 };
}

/* The options of a call on a thread's two rows of a tile of keys, which begins at a multiple of 8. */
template <class T, int KEYS> struct attention_mma_options {
    const attention_params &p;
    const simt_dropout dropout;
    const attention_terms<T, true> terms[2];

    DEVICE attention_mma_options(const attention_params &params, int batch, int head, int row)
        : p(params), dropout(attention_dropout_of<true>(params.at.options)),
          terms{ attention_terms_of<T, true>(params.at, batch, head, lesser(row, params.at.sq - 1)),
                 attention_terms_of<T, true>(params.at, batch, head, lesser(row + 8, params.at.sq - 1)) } {}

    /* From products to scores. */
    DEVICE void add(float (&s)[KEYS / 2], int key) const {
        const int column = key + thread_index() % 4 * 2;
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            const float z = p.bend != 0 ? p.at.softcap * attention_tanh(s[i] * p.bend) : s[i] * p.at.scale;
            s[i] = terms[i / 2 % 2].add(p.at.options, column + i / 4 * 8 + i % 2, z);
        }
    }
    DEVICE void drop(float (&w)[KEYS / 2], int key) const {
        if (!(dropout.p > 0)) return;
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int c = 0; c < KEYS; c += 32) {
                const uint32_t keeps = terms[half].keeps_pairs(dropout, key + c);
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        float &x = w[c / 2 + 4 * i + 2 * half + e];
                        x = keeps >> (8 * i + e) & 1 ? x : 0.0f;
                    }
            }
    }
};

template <class T, int D, int KEYS, int R, int STAGES, bool BENT, bool OPTIONS = false>
DEVICE void attention_mma(const attention_params &p) {
    enum { ROWS = ATTENTION_SIDE * R };
    static_assert(!OPTIONS || R == 1, "there are registers for 16 rows to a warp");
    char *const q = launch_memory();
    const attention_place at = attention_mma_place(p, ROWS);
    const int row = at.first + thread_index() / WARP * 16 * R + thread_index() % WARP / 4, count = p.at.sq - at.first;
    const attention_sight first = attention_keys_of(p.at, at.batch, at.first),
                          last = attention_keys_of(p.at, at.batch, at.first + lesser(count, ROWS) - 1);
    const int low = OPTIONS ? first.low / 8 * 8 : first.low, tiles = (greater(last.high - low, 0) + KEYS - 1) / KEYS;
    const attention_mma_feed<T, D, KEYS, STAGES> feed(p, at.batch, at.head / p.at.group, q + ROWS * 2 * D, low,
                                                      last.high);
    attention_left_operand<D, ROWS, R, D == 64> left(q);
    attention_rows rows[R];
    float o[R][D / 2] = {};
#pragma unroll
    for (int r = 0; r < R; r++) rows[r] = attention_rows_none();
    if (tiles > 0) {
        attention_copies<T, D, ROWS>(p.q, at.batch, at.head, p.at.d, p.wide).copy(q, at.first, count);
        feed.begin(tiles - 1);
    }
#pragma unroll 1
    for (int tile = tiles - 1; tile >= 0; tile--) {
        const int key = low + tile * KEYS;
        const char *const k = feed.wait_keys(tile);
        float s[R][KEYS / 2];
        if (tile == tiles - 1) left.hold();
        attention_mma_scores<T, D, KEYS>(s, left, k);
        if constexpr (BENT) {
#pragma unroll
            for (int r = 0; r < R; r++) attention_bend(s[r], p.bend);
        }
        if constexpr (OPTIONS) attention_mma_options<T, KEYS>(p, at.batch, at.head, row).add(s[0], key);
        /* sights are found here so that they need no registers elsewhere */
        if (key < last.low || key + KEYS > first.high) {
#pragma unroll
            for (int r = 0; r < R; r++)
                attention_see(rows[r], p.at, at.batch, row + r * 16), attention_hide(s[r], rows[r], key);
        }
        const char *const v = feed.wait_values(tile);
        if constexpr (R > 1) {
            const float spread = p.spread;
            float base[R][2];
            attention_mma_keep_up(s, rows, o, spread);
#pragma unroll
            for (int i = 0; i < 2 * R; i++)
                base[i / 2][i % 2] = rows[i / 2].top[i % 2] == -infinity() ? 0.0f : rows[i / 2].top[i % 2] * spread;
            const auto weight = [&](int r, int i) {
                const float x = exp2_approx(fused(s[r][2 * i], spread, -base[r][i % 2])),
                            y = exp2_approx(fused(s[r][2 * i + 1], spread, -base[r][i % 2]));
                rows[r].sum[i % 2] += x, rows[r].sum[i % 2] += y;
                return T::pair(x, y);
            };
            attention_mma_values<T, D, KEYS>(o, weight, v);
        } else {
            float factor[2];
            attention_soften(s[0], rows[0], factor, p.spread);
            attention_scale(o[0], factor);
            if constexpr (OPTIONS) attention_mma_options<T, KEYS>(p, at.batch, at.head, row).drop(s[0], key);
            attention_mma_values<T, D, KEYS>(o, [&](int r, int i) { return T::pair(s[r][2 * i], s[r][2 * i + 1]); }, v);
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        attention_see(rows[r], p.at, at.batch, row + r * 16);
        attention_spoil(rows[r]);
        attention_end<T, D, OPTIONS>(p, at.batch, at.head, row + r * 16, o[r], rows[r]);
    }
}

#endif
