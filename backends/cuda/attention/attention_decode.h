/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of few queries to many keys, as in decoding: bf16 and f16, d up to 128, by the tensor cores of sm_80.
 *
 * A tile is up to 16 queries that share a head of keys: heads of its group, and tokens. Its keys are split between
 * blocks, and further between the four warps of each: keys and values for the next step are asked for as soon as those
 * at hand are multiplied. Sums of warps, and then of blocks, are added in a fixed order; if there is one block to a
 * tile it ends the tile's rows itself, otherwise a second launch does.
 *
 * NOTES. Floor: keys and values once. On an H200, which copies at 4.27 TB/s, 64 sequences of 8192 keys (8 heads, d 128,
 * bf16) are read at 4.28, of 1024 at 3.69. Without requests of 256 bytes, and with the heads of a sequence's keys far
 * apart in the order of blocks, it was 3.70 and 3.14. */
#ifndef TRINE_CUDA_ATTENTION_DECODE_H
#define TRINE_CUDA_ATTENTION_DECODE_H

#include "attention_decode_products.h"

/* A tile: of a batch, the tokens from `token` on, of key head `head` the heads from `first` on. */
struct attention_decode_tile {
    int batch, head, token, first;
    int number; /* among all */
};
DEVICE attention_decode_tile attention_decode_tile_of(const attention_decode_params &p, int tile) {
    const int heads = p.call.at.h / p.call.at.group, plane = tile / p.row_tiles, row_tile = tile - plane * p.row_tiles,
              batch = plane / heads, token = row_tile / p.head_tiles;
    return { batch, plane - batch * heads, token * p.tokens, (row_tile - token * p.head_tiles) * p.heads, tile };
}

/* A row of the tile's 16. */
struct attention_decode_row {
    int token, head;
    bool exists;
};
DEVICE attention_decode_row attention_decode_row_of(const attention_decode_params &p, const attention_decode_tile &t,
                                                    int row) {
    const int step = row / p.heads, head = t.first + row - step * p.heads, token = t.token + step;
    const bool exists = step < p.tokens && token < p.call.at.sq && head < p.call.at.group;
    return { exists ? token : t.token, t.head * p.call.at.group + (exists ? head : t.first), exists };
}

/* A warp's part of a tile. */
template <class T, int D, int KEYS> struct attention_decode_warp : attention_decode_products<T, D, KEYS> {
    using Bits = typename T::bits;
    const Bits *keys, *values; /* of token 0 */
    int64_t key_step, value_step;
    int columns;

    DEVICE attention_decode_warp(const attention_params &p, const attention_decode_tile &t)
        : keys(attention_row<T>(p.k, t.batch, 0, t.head)), values(attention_row<T>(p.v, t.batch, 0, t.head)),
          key_step(p.k.token), value_step(p.v.token), columns(p.at.d) {}

    template <bool WIDE> DEVICE void read_queries(const attention_decode_params &p, const attention_decode_tile &t) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const attention_decode_row row = attention_decode_row_of(p, t, thread_index() % WARP / 4 + r * 8);
            const Bits *const from = attention_row<T>(p.call.q, t.batch, row.token, row.head);
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                attention_decode_read<T, WIDE>(this->q[i][r], from, this->key_column(i), columns, row.exists);
        }
    }
    template <bool WIDE> DEVICE void read_keys(int first, int end) {
#pragma unroll
        for (int i = 0; i < KEYS / 8; i++) {
            const int key = first + this->key_of(i);
#pragma unroll
            for (int j = 0; j < D / 32; j++)
                attention_decode_read<T, WIDE>(this->k[i][j], keys + key * key_step, this->key_column(j), columns,
                                               key < end);
        }
    }
    template <bool WIDE> DEVICE void read_values(int first, int end) {
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int key = first + this->value_of(i, e);
#pragma unroll
                for (int j = 0; j < D / 64; j++)
                    attention_decode_read<T, WIDE>(this->v[i][j][e], values + key * value_step, this->value_column(j),
                                                   columns, key < end);
            }
    }

    /* Keys from `first` to below `end`, a step in so many. */
    template <bool WIDE>
    DEVICE void run(const attention_decode_params &p, const attention_decode_tile &t, int first, int end, int step,
                    const attention_sight &all) {
        if (first >= end) return;
        read_keys<WIDE>(first, end);
        read_values<WIDE>(first, end);
        read_queries<WIDE>(p, t);
#pragma unroll 1
        for (int key = first; key < end; key += step) {
            float s[KEYS / 2], factor[2];
            this->scores(s);
            if (key + step < end) read_keys<WIDE>(key + step, end);
            if (p.call.bends) attention_bend(s, p.call.bend);
            if (key < all.low || key + KEYS > all.high) attention_hide(s, this->rows, key);
            attention_soften(s, this->rows, factor, p.call.spread);
            attention_scale(this->o, factor);
            this->add_values(s);
            if (key + step < end) read_values<WIDE>(key + step, end);
        }
    }
};

/* What is known of a row from some of its keys: its sums, then the largest score, the sum of weights and the reach. */
template <int D> struct attention_decode_sums {
    float o[D / WARP], top, sum, reach; /* lane l has columns l, l + 32, ... */

    /* That of `count` parts, whose records are so far apart; by a warp. */
    DEVICE attention_decode_sums(const float *parts, int count, int64_t step, float spread)
        : top(-infinity()), sum(0), reach(0) {
#pragma unroll
        for (int i = 0; i < D / WARP; i++) o[i] = 0;
#pragma unroll 8
        for (int n = 0; n < count; n++) top = larger(top, parts[n * step + D]);
        const float base = top == -infinity() ? 0.0f : top * spread;
#pragma unroll 8
        for (int n = 0; n < count; n++) {
            const float *const part = parts + n * step;
            const float factor = exp2_approx(fused(part[D], spread, -base));
            sum = fused(part[D + 1], factor, sum), reach = larger(reach, part[D + 2]);
#pragma unroll
            for (int i = 0; i < D / WARP; i++) o[i] = fused(part[thread_index() % WARP + i * WARP], factor, o[i]);
        }
    }
    DEVICE void put(float *part) const {
#pragma unroll
        for (int i = 0; i < D / WARP; i++) part[thread_index() % WARP + i * WARP] = o[i];
        if (thread_index() % WARP == 0) part[D] = top, part[D + 1] = sum, part[D + 2] = reach;
    }

    /* Ends the row, or does it again. */
    template <class T> DEVICE void end(const attention_params &p, int batch, const attention_decode_row &row) const {
        const float FAR = 0x1p18f;
        const attention_total total = attention_row_total<T>(p, top, sum, batch, row.head, row.token, true);
        const bool bad = attention_keys_of(p.at, batch, row.token).bad(), none = total.sum == 0 && !bad;
        const float factor = bad ? not_a_number() : total.factor / total.sum;
        typename T::bits *const to = attention_row<T>(p.o, batch, row.token, row.head);
        float spoilt = 0;
#pragma unroll
        for (int i = 0; i < D / WARP; i++) {
            const int column = thread_index() % WARP + i * WARP;
            if (p.hides && column < p.at.d) spoilt += o[i] * 0.0f;
            if (column < p.at.d) to[column] = T::put(none ? 0.0f : o[i] * factor);
        }
        if (p.lse.data && thread_index() % WARP == 0)
            *attention_row<f32>(p.lse, batch, row.token, row.head) = f32::put(bad    ? not_a_number()
                                                                              : none ? -infinity()
                                                                                     : total.lse);
        if (any_of_warp(!bad && (reach > FAR || total.far || (!none && spoilt != 0))))
            attention_redo<T, D, false>(p, batch, row.head, row.token);
    }
};

enum { ATTENTION_DECODE_WARPS = ATTENTION_DECODE_THREADS / WARP };

template <class T, int D, int KEYS> DEVICE void attention_decode(const attention_decode_params &p) {
    enum { RECORD = ATTENTION_DECODE_RECORD(D), STEP = ATTENTION_DECODE_WARPS * KEYS };
    SHARED float sums[ATTENTION_DECODE_WARPS][16][RECORD];
    const int warp = thread_index() / WARP, lane = thread_index() % WARP;
    /* Tiles of the same keys are neighbours, and so are heads, whose keys lie side by side. */
    const int block = (int)block_index(), across = p.row_tiles * (p.call.at.h / p.call.at.group),
              slice = block / across, batch = slice / p.parts;
    const int part = slice - batch * p.parts;
    const attention_decode_tile t = attention_decode_tile_of(p, batch * across + block - slice * across);
    attention_decode_warp<T, D, KEYS> mine(p.call, t);
    attention_span span = attention_span_of({ 0, 0 }, false);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const attention_decode_row row = attention_decode_row_of(p, t, lane / 4 + r * 8);
        const attention_sight sees = attention_keys_of(p.call.at, t.batch, row.token);
        const attention_span more = attention_span_of(sees, row.exists);
        mine.rows.sees[r] = sees;
        span = { { lesser(span.any.low, more.any.low), greater(span.any.high, more.any.high) },
                 { greater(span.all.low, more.all.low), lesser(span.all.high, more.all.high) } };
    }
    const attention_sight any = { group_combine<WARP>(span.any.low, attention_least()),
                                  group_combine<WARP>(span.any.high, attention_most()) };
    const attention_sight all = { group_combine<WARP>(span.all.low, attention_most()),
                                  group_combine<WARP>(span.all.high, attention_least()) };
    const int count = greater(any.high - any.low, 0),
              own = (int)(((count + p.parts - 1) / p.parts + STEP - 1) / STEP) * STEP;
    const int first = count == 0 ? 0 : any.low + lesser(part * own, count),
              end = count == 0 ? 0 : any.low + lesser((part + 1) * own, count);
    if (p.call.wide && p.call.at.d % 8 == 0)
        mine.template run<true>(p, t, first + warp * KEYS, end, STEP, all);
    else
        mine.template run<false>(p, t, first + warp * KEYS, end, STEP, all);
    mine.put(sums[warp][0], RECORD);
    sync_block();
#pragma unroll 1
    for (int i = warp; i < 16; i += ATTENTION_DECODE_WARPS) {
        const attention_decode_row row = attention_decode_row_of(p, t, i);
        if (!row.exists) continue;
        const attention_decode_sums<D> all_warps(sums[0][i], ATTENTION_DECODE_WARPS, 16 * RECORD, p.call.spread);
        if (p.parts == 1)
            all_warps.template end<T>(p.call, t.batch, row);
        else
            all_warps.put(p.sums + (((int64_t)t.number * p.parts + part) * 16 + i) * RECORD);
    }
}

/* The rows of all tiles, of which several blocks had keys; a warp for each. */
template <class T, int D> DEVICE void attention_decode_end(const attention_decode_params &p) {
    enum { RECORD = ATTENTION_DECODE_RECORD(D) };
    enum { BLOCKS = 16 / ATTENTION_DECODE_WARPS }; /* of a tile */
    const int i = (int)block_index() % BLOCKS * ATTENTION_DECODE_WARPS + thread_index() / WARP;
    const attention_decode_tile t = attention_decode_tile_of(p, (int)block_index() / BLOCKS);
    const attention_decode_row row = attention_decode_row_of(p, t, i);
    if (!row.exists) return;
    attention_decode_sums<D>(p.sums + ((int64_t)t.number * p.parts * 16 + i) * RECORD, p.parts, 16 * RECORD,
                             p.call.spread)
        .template end<T>(p.call, t.batch, row);
}

#endif
