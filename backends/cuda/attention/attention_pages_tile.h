/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode by the tensor cores of sm_80 where many rows share a head of keys, or columns are more than 128:
 * prefill, latent attention. Caches are of the queries' type.
 *
 * A block has 64 rows, 16 to each of four teams of C warps, and walks over the tiles of a part's keys, of which STAGES
 * are on their way in shared memory (attention_mma.h has their layout). A warp finds the scores of a C-th of a tile's
 * keys, and has a C-th of the columns of the sums; scores go to the others of its team through shared memory. */
#ifndef TRINE_CUDA_ATTENTION_PAGES_TILE_H
#define TRINE_CUDA_ATTENTION_PAGES_TILE_H

#include "attention_mma.h"
#include "attention_pages_rows.h"

/* Rows of a tile in panels of ROWS, D columns, by so many threads; where row j begins `at` says, in elements of
 * `data`. */
template <class T, int D, int ROWS, int THREADS, class At>
DEVICE void pages_copy(char *to, const void *data, const At &at, int columns, bool wide) {
    using Bits = typename T::bits;
    enum { PIECES = D / 8 };
#pragma unroll 4
    for (int i = thread_index(); i < ROWS * PIECES; i += THREADS) {
        const int row = i / PIECES, piece = i - row * PIECES, left = columns - piece * 8;
        const int64_t from = at(row);
        const int elements = from == DECODE_ABSENT || left < 0 ? 0 : left < 8 ? left : 8;
        const Bits *const source = (const Bits *)data + (elements > 0 ? from + piece * 8 : 0);
        char *const there = to + attention_piece<ROWS>(row, piece);
        if (wide)
            copy_bytes<16>(there, source, elements * 2);
        else
#pragma unroll 1
            for (int e = 0; e < 8; e++) ((Bits *)there)[e] = e < elements ? source[e] : Bits(0);
    }
}

template <class T, int D, int DV, int C, int KEYS, int STAGES> struct pages_tile {
    static constexpr int THREADS = 128 * C, OWN = KEYS / C, COLUMNS = DV / C, ROWS = ATTENTION_PAGES_SIDE,
                         KEY_BYTES = KEYS * 2 * D, STAGE = ATTENTION_PAGES_STAGE(D, DV, KEYS),
                         STEP = KEYS + 4; /* floats of a row of scores, which are exchanged */
    static constexpr bool LATENT = D != DV;
    static_assert(OWN % 16 == 0 && COLUMNS % 64 == 0, "whole matrices, and panels");
    const decode_params &p;
    const decode_place at;
    const pages_part part;
    char *const q, *const stages;
    float *const exchange;
    const pages_list list;
    attention_rows rows;
    float o[COLUMNS / 2];

    static DEVICE int team() { return thread_index() / WARP % 4; }
    static DEVICE int member() { return thread_index() / WARP / 4; }
    static DEVICE int row_of(int r) { return team() * 16 + thread_index() % WARP / 4 + r * 8; }

    DEVICE pages_tile(const decode_params &params, char *memory)
        : p(params), at(params), part(params, at), q(memory), stages(memory + ROWS * 2 * D),
          exchange((float *)(stages + STAGES * STAGE)),
          list{ (int64_t *)(exchange + (C > 1 ? ROWS * STEP : 0)),
                (int64_t *)(exchange + (C > 1 ? ROWS * STEP : 0)) + ATTENTION_PAGES_PART },
          rows(attention_rows_none()) {
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; i++) o[i] = 0;
    }

    DEVICE void fetch(int tile) const {
        if (tile * KEYS < part.end) {
            char *const to = stages + tile % STAGES * STAGE;
            const int64_t *const keys = list.key + tile * KEYS, *const values = list.value + tile * KEYS;
            pages_copy<T, D, KEYS, THREADS>(to, p.k.data, [&](int j) { return keys[j]; }, p.d, p.wide);
            if (!LATENT)
                pages_copy<T, DV, KEYS, THREADS>(
                    to + KEY_BYTES, p.v.data, [&](int j) { return values[j]; }, p.dv, p.wide);
        }
        copy_commit();
    }

    /* The products of the warp's queries with its share of the tile's keys. */
    DEVICE void scores(float (&s)[OWN / 2], const char *k) const {
        const attention_view<ROWS, false> left(true, team() * 16);
        const attention_view<KEYS, false> right(false, member() * OWN);
#pragma unroll
        for (int i = 0; i < OWN / 2; i++) s[i] = 0;
#pragma unroll 4
        for (int c = 0; c < D; c += 16) {
            uint32_t a[4];
            left.load(a, q, 0, c);
#pragma unroll
            for (int key = 0; key < OWN; key += 16) {
                uint32_t b[4];
                right.load(b, k, key, c);
                attention_multiply<T>(s + key / 2, a, b);
            }
        }
    }
    /* All of the tile's, in powers of 2. */
    DEVICE void share(float (&s)[KEYS / 2], const float (&own)[OWN / 2], const pages_scale &scale) const {
        const int column = thread_index() % 4 * 2;
#pragma unroll
        for (int i = 0; i < OWN / 2; i++) {
            const float x = scale.score(own[i]);
            if constexpr (C == 1)
                s[i] = x;
            else
                exchange[row_of(i / 2 % 2) * STEP + member() * OWN + i / 4 * 8 + column + i % 2] = x;
        }
        if constexpr (C > 1) {
            sync_team(team(), WARP * C);
#pragma unroll
            for (int i = 0; i < KEYS / 2; i++) s[i] = exchange[row_of(i / 2 % 2) * STEP + i / 4 * 8 + column + i % 2];
        }
    }
    DEVICE void hide(float (&s)[KEYS / 2], int key, const attention_sight &all) const {
        bool absent = false;
        for (int j = thread_index() % WARP; j < KEYS; j += WARP) absent = absent || list.key[key + j] == DECODE_ABSENT;
        if (any_of_warp(absent))
#pragma unroll
            for (int i = 0; i < KEYS / 2; i++)
                if (list.key[key + i / 4 * 8 + thread_index() % 4 * 2 + i % 2] == DECODE_ABSENT) s[i] = -infinity();
        if (key < all.low || key + KEYS > all.high) attention_hide(s, rows, key);
    }
    DEVICE void add_values(const float (&s)[KEYS / 2], const char *v) {
        const attention_view<KEYS, true> right(false, 0, 0);
        uint32_t w[KEYS / 4];
        attention_pack<T>(w, s);
#pragma unroll
        for (int key = 0; key < KEYS; key += 16) {
            const uint32_t a[4] = { w[key / 4], w[key / 4 + 1], w[key / 4 + 2], w[key / 4 + 3] };
#pragma unroll
            for (int c = 0; c < COLUMNS; c += 16) {
                uint32_t b[4];
                right.load(b, v + member() * (COLUMNS / 64) * (KEYS * 128), key, c);
                attention_multiply<T>(o + c / 2, a, b);
            }
        }
    }

    DEVICE attention_sight common() const {
        return { group_combine<WARP>(greater(rows.sees[0].low, rows.sees[1].low), attention_most()),
                 group_combine<WARP>(lesser(rows.sees[0].high, rows.sees[1].high), attention_least()) };
    }

    DEVICE void run(const pages_scale &scale) {
        const int first = part.first / KEYS, tiles = (part.end + KEYS - 1) / KEYS;
#pragma unroll
        for (int r = 0; r < 2; r++) rows.sees[r] = part.sees(p, at, pages_row(p, at, row_of(r), ROWS));
        const attention_sight all = common();
        pages_copy<T, D, ROWS, THREADS>(
            q, p.q.data,
            [&](int r) {
                const pages_row row(p, at, r, ROWS);
                return row.exists ? row.query(p, at) : DECODE_ABSENT;
            },
            p.d, p.wide);
#pragma unroll
        for (int i = 0; i < STAGES - 1; i++) fetch(first + i);
#pragma unroll 1
        for (int tile = first; tile < tiles; tile++) {
            float own[OWN / 2], s[KEYS / 2], before[2];
            copy_wait<STAGES - 2>();
            sync_block(); /* the tile is there, and nobody reads the one before any more */
            fetch(tile + STAGES - 1);
            const char *const k = stages + tile % STAGES * STAGE;
            scores(own, k);
            share(s, own, scale);
            hide(s, tile * KEYS, all);
            attention_soften(s, rows, before, 1.0f);
            attention_scale(o, before);
            add_values(s, LATENT ? k : k + KEY_BYTES);
        }
        copy_wait<0>();
    }

    /* Rows to their places in the workspace; those that may have met NaN or Inf that they do not see are done again. */
    DEVICE void end(const pages_scale &scale) const {
        const attention_sight all = common();
        const bool hides = all.low > part.first || all.high < part.end;
        const int lane = thread_index() % WARP, column = member() * COLUMNS + lane % 4 * 2;
        bool again[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const pages_row row(p, at, row_of(r), ROWS);
            float *const to = decode_record(p, at, row.number);
            float spoilt = 0, sum = rows.sum[r];
            sum += shuffle_xor(sum, 1);
            sum += shuffle_xor(sum, 2);
#pragma unroll
            for (int i = 0; i < COLUMNS / 2; i++)
                if (i / 2 % 2 == r) spoilt += o[i] * 0.0f;
            again[r] = row.exists && hides && spoilt != 0;
            if (!row.exists) continue;
#pragma unroll
            for (int i = r * 2; i < COLUMNS / 2; i += 4)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (column + i / 4 * 8 + e < p.dv) to[column + i / 4 * 8 + e] = o[i + e];
            if (member() == 0 && lane % 4 == 0) to[p.dv] = rows.top[r], to[p.dv + 1] = sum;
        }
        if (!any_of_warp(again[0] || again[1])) return;
        sync_warp();
#pragma unroll 1
        for (int r = 0; r < 16; r++) {
            if (!any_of_warp(lane / 4 == r % 8 && (r < 8 ? again[0] : again[1]))) continue;
            const pages_row row(p, at, team() * 16 + r, ROWS);
            const float top = group_max<WARP>(lane / 4 != r % 8 ? -infinity() : r < 8 ? rows.top[0] : rows.top[1]);
            pages_sums<COLUMNS> sums;
            sums.template redo<T, T>(p, at, part, row, scale, member() * COLUMNS);
            sums.store(decode_record(p, at, row.number), member() * COLUMNS, p.dv, top);
        }
    }
};

template <class T, int D, int DV, int C, int KEYS, int STAGES>
DEVICE void attention_pages_tile(const decode_params &p) {
    pages_tile<T, D, DV, C, KEYS, STAGES> tile(p, launch_memory());
    if (tile.part.first >= tile.part.end) return;
    const pages_scale scale(p, tile.at);
    tile.list.fill(p, tile.at, tile.part, tile.THREADS);
    sync_block();
    tile.run(scale);
    tile.end(scale);
}

#endif
