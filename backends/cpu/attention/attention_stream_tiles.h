/* SPDX-License-Identifier: Apache-2.0 */
/* Few rows of bf16 against a block of keys, by AMX. Keys are the left operand, as they lie in memory; the scores of all
 * heads' rows come out side by side, a line for each key, and are transposed. So weights, in bf16, are the left operand
 * of the other product, whose right one is the values, pairs of keys interleaved within 16 bytes. That puts the columns
 * of sums out of order, 32 at a time, until the part is done. */
#ifndef TRINE_CPU_ATTENTION_STREAM_TILES_H
#define TRINE_CPU_ATTENTION_STREAM_TILES_H

#include "attention_stream_keys.h"

enum { STREAM_QUARTERS = STREAM_BLOCK / STREAM_TILE, STREAM_HALVES = STREAM_BLOCK / SIDE };

#if defined(__AMX_TILE__)
/* Tile registers: 0 to 3 are sums, 4 what they have in common, the queries or the weights, 5 to 7 the others. */
INLINE void stream_configure(int bytes, int sums, int common) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = { .palette = 1 };
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = i < 5 ? (uint16_t)bytes : 64;
        config.rows[i] = (uint8_t)(i < 4 ? sums : i == 4 ? common : STREAM_TILE);
    }
    _tile_loadconfig(&config);
}
INLINE void stream_tiles_for_keys(const stream *s) { stream_configure(4 * (int)s->high, STREAM_TILE, STREAM_TILE); }
INLINE void stream_tiles_for_values(const stream *s) { stream_configure(64, (int)s->high, (int)s->high); }
static void stream_end(const stream *s) {
    if (s->tiles) _tile_release();
}

/* Scores of a block, in quarters whose keys are `step` bytes apart, with a tile of queries. */
INLINE void stream_tile_scores(const char *const *quarter, const int64_t *step, const char *q, int64_t d, int64_t high,
                               float *to, int64_t ld, stream_ahead *ahead) {
    const int each = (int)(STREAM_BLOCK * SIDE / d) + 1;
    __asm__ volatile("" ::: "memory"); /* tiles are loaded behind the compiler's back */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t c = 0; c < 2 * d; c += 2 * SIDE, q += STREAM_TILE * high * 4) {
        stream_ask(ahead, each);
        _tile_loadd(4, q, high * 4);
        _tile_loadd(5, quarter[0] + c, step[0]);
        _tile_dpbf16ps(0, 5, 4);
        _tile_loadd(6, quarter[1] + c, step[1]);
        _tile_dpbf16ps(1, 6, 4);
        _tile_loadd(7, quarter[2] + c, step[2]);
        _tile_dpbf16ps(2, 7, 4);
        _tile_loadd(5, quarter[3] + c, step[3]);
        _tile_dpbf16ps(3, 5, 4);
    }
    _tile_stored(0, to, ld * 4);
    _tile_stored(1, to + STREAM_TILE * ld, ld * 4);
    _tile_stored(2, to + 2 * STREAM_TILE * ld, ld * 4);
    _tile_stored(3, to + 3 * STREAM_TILE * ld, ld * 4);
    __asm__ volatile("" ::: "memory");
}

/* A tile of rows: o += p v, of so many halves of a block and columns. A tile of values is 1024 bytes; `half` bytes are
 * from those of a half to the next's. */
INLINE void stream_tile_values(const char *p, const char *v, int halves, int64_t half, int64_t columns, float *o,
                               int64_t ldo) {
    enum { BYTES = STREAM_TILE * 64 };
    int64_t c = 0;
    __asm__ volatile("" ::: "memory");
    for (; c + 2 * SIDE <= columns; c += 2 * SIDE, v += 4 * BYTES) {
        _tile_loadd(0, o + c, ldo * 4);
        _tile_loadd(1, o + c + STREAM_TILE, ldo * 4);
        _tile_loadd(2, o + c + 2 * STREAM_TILE, ldo * 4);
        _tile_loadd(3, o + c + 3 * STREAM_TILE, ldo * 4);
        for (int i = 0; i < halves; i++) {
            _tile_loadd(4, p + i * SIDE * 2, STREAM_LDS * 4);
            _tile_loadd(5, v + i * half, 64);
            _tile_dpbf16ps(0, 4, 5);
            _tile_loadd(6, v + i * half + BYTES, 64);
            _tile_dpbf16ps(1, 4, 6);
            _tile_loadd(7, v + i * half + 2 * BYTES, 64);
            _tile_dpbf16ps(2, 4, 7);
            _tile_loadd(5, v + i * half + 3 * BYTES, 64);
            _tile_dpbf16ps(3, 4, 5);
        }
        _tile_stored(0, o + c, ldo * 4);
        _tile_stored(1, o + c + STREAM_TILE, ldo * 4);
        _tile_stored(2, o + c + 2 * STREAM_TILE, ldo * 4);
        _tile_stored(3, o + c + 3 * STREAM_TILE, ldo * 4);
    }
    if (c < columns) {
        _tile_loadd(0, o + c, ldo * 4);
        _tile_loadd(1, o + c + STREAM_TILE, ldo * 4);
        for (int i = 0; i < halves; i++) {
            _tile_loadd(4, p + i * SIDE * 2, STREAM_LDS * 4);
            _tile_loadd(5, v + i * half, 64);
            _tile_dpbf16ps(0, 4, 5);
            _tile_loadd(6, v + i * half + BYTES, 64);
            _tile_dpbf16ps(1, 4, 6);
        }
        _tile_stored(0, o + c, ldo * 4);
        _tile_stored(1, o + c + STREAM_TILE, ldo * 4);
    }
    __asm__ volatile("" ::: "memory");
}

/* ------------------------------------------------------------------------------------------------------------- bf16 */

/* 32 codes of e4m3 as bf16, exactly; the 8 numbers below the smallest normal one by a table. */
INLINE vi stream_halve_e4m3(const char *from) {
    static const uint16_t small[32] = { 0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60 };
    const vs code = (vs)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i_u *)from)), body = code & 0x7f;
    const vs normal = (body << 4) + (120 << 7),
             least = (vs)_mm512_permutexvar_epi16((__m512i)body, (__m512i)unit_load(small));
    const vs below = body < 8, nan = body == 0x7f;
    vs x = (below & least) | (~below & normal);
    x = (nan & 0x7fc0) | (~nan & x);
    return (vi)(x | (code & (int16_t)0x8000));
}
INLINE vi stream_halve_i8(const char *from) {
    return dots_round(stream_load(from, 0, VL, TRINE_I8), stream_load(from, VL, VL, TRINE_I8));
}

/* n elements as bf16, and zeros up to whole squares; all that is stored in 8 bits is a bf16. */
static void stream_halve(const char *from, int64_t n, char *to, trine_dtype C) {
    int64_t c = 0;
    if (C == TRINE_BF16) {
        dots_row(from, n, to);
        return;
    }
    for (; c + 2 * VL <= n; c += 2 * VL)
        unit_store(to + c * 2, C == TRINE_E4M3 ? stream_halve_e4m3(from + c) : stream_halve_i8(from + c));
    if (c < n) {
        char rest[2 * VL] = { 0 };
        memcpy(rest, from + c, (size_t)(n - c));
        unit_store(to + c * 2, C == TRINE_E4M3 ? stream_halve_e4m3(rest) : stream_halve_i8(rest));
    }
}

/* Two rows of 32 elements interleaved within 16 bytes: of each 8 columns the first 4, or the others. */
#define STREAM_PAIRS(a) a, a + 32, a + 1, a + 33, a + 2, a + 34, a + 3, a + 35
INLINE vi stream_zip(vi first, vi second, bool others) {
    const vs x = (vs)first, y = (vs)second;
    return others ? (vi)__builtin_shufflevector(x, y, STREAM_PAIRS(4), STREAM_PAIRS(12), STREAM_PAIRS(20),
                                                STREAM_PAIRS(28))
                  : (vi)__builtin_shufflevector(x, y, STREAM_PAIRS(0), STREAM_PAIRS(8), STREAM_PAIRS(16),
                                                STREAM_PAIRS(24));
}

/* 32 sums from the order of tiles to that of columns, and back. */
INLINE void stream_straighten(float *o) {
    const vf x = get(o), y = get(o + VL);
    put(o, __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23));
    put(o + VL, __builtin_shufflevector(x, y, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31));
}
INLINE void stream_bend(float *o) {
    const vf x = get(o), y = get(o + VL);
    put(o, __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27));
    put(o + VL, __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31));
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

/* Are 16 keys a tile as they lie in memory? Then *step is from one to the next. */
INLINE bool stream_in_place(const stream *s, const char *const *at, int keys, int64_t *step) {
    if (s->C != TRINE_BF16 || s->d % SIDE != 0 || keys < STREAM_TILE || !at[0] || !at[1]) return false;
    *step = at[1] - at[0];
    bool even = true;
    for (int i = 2; i < STREAM_TILE; i++) even &= at[i] != NULL && at[i] - at[i - 1] == *step;
    return even;
}

static void stream_scores_by_tiles(const stream *s, const stream_buffers *w, const stream_part *part, int start,
                                   int keys, int64_t h, stream_ahead *ahead) {
    const char *quarter[STREAM_QUARTERS];
    int64_t step[STREAM_QUARTERS];
    const int64_t wide = cpu_round_up(s->d, SIDE), ld = cpu_round_up(s->heads * s->padded, STREAM_TILE);
    for (int i = 0; i < STREAM_QUARTERS; i++) {
        const char *const *at = part->k + start + i * STREAM_TILE;
        const int n = keys - i * STREAM_TILE;
        quarter[i] = w->zeros, step[i] = 0;
        if (n <= 0) continue;
        if (stream_in_place(s, at, n, &step[i])) {
            quarter[i] = at[0] + h * s->k_head;
            continue;
        }
        char *to = (char *)w->block + i * STREAM_TILE * s->pitch;
        quarter[i] = to, step[i] = s->pitch;
        for (int j = 0; j < STREAM_TILE; j++, to += s->pitch) {
            stream_ask(ahead, 1);
            if (j < n && at[j])
                stream_halve(at[j] + h * s->k_head, s->d, to, s->C);
            else
                memset(to, 0, (size_t)(wide * 2));
        }
    }
    for (int64_t r = 0; r < s->padded; r += s->high)
        stream_tile_scores(quarter, step, (const char *)w->q + (h * s->padded + r) * wide * 2, wide, s->high,
                           w->lines + h * s->padded + r, ld, ahead);
}

/* The scores of a block from lines of keys to rows. */
static void stream_turn(const stream *s, const stream_buffers *w, int start) {
    const int64_t ld = cpu_round_up(s->heads * s->padded, STREAM_TILE);
    for (int64_t r = 0; r < s->heads * s->padded; r += VL)
        for (int j = 0; j < STREAM_BLOCK; j += VL) {
            vf x[VL];
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) x[i] = get(w->lines + (j + i) * ld + r);
            transpose(x);
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) put(w->s + (r + i) * STREAM_LDS + start + j, x[i]);
        }
}

/* A half of a block of values becomes tiles of pairs of keys. Are all finite, if that is asked? */
INLINE bool stream_interleave(const char *const *from, int64_t dv, char *to, stream_ahead *ahead, bool asked) {
    enum { BYTES = STREAM_TILE * 64 };
    vhu seen = { 0 };
    for (int i = 0; i < SIDE; i += 2) {
        char *at = to + i / 2 * 64;
        stream_ask(ahead, 2);
        for (int64_t c = 0; c < dv; c += SIDE, at += 2 * BYTES) {
            const vi x = dots_part(from[i] + c * 2, dv - c), y = dots_part(from[i + 1] + c * 2, dv - c);
            if (asked) seen = dots_see(dots_see(seen, x), y);
            unit_store(at, stream_zip(x, y, false));
            unit_store(at + BYTES, stream_zip(x, y, true));
        }
    }
    return asked && dots_finite(seen);
}

/* o += p v of a head's rows, which must not meet what is not finite among the values that they do not see. */
static void stream_values_apart(const stream *s, const stream_part *part, int start, int keys, const char *const *v,
                                const float *p, float *o) {
    for (int64_t r = 0; r < s->rows; r++, p += STREAM_LDS, o += s->ldo) {
        const int low = part->low[r] > start ? part->low[r] - start : 0,
                  high = part->high[r] - start < keys ? part->high[r] - start : keys;
        for (int64_t c = 0; c < s->dv; c += SIDE) stream_straighten(o + c);
        for (int j = low; j < high; j++)
            for (int64_t c = 0; c < s->dv; c += VL)
                put(o + c,
                    vfma(vset(sload(p, TRINE_BF16, start + j)), load_part(v[j], TRINE_BF16, c, s->dv - c), get(o + c)));
        for (int64_t c = 0; c < s->dv; c += SIDE) stream_bend(o + c);
    }
}

static void stream_values_by_tiles(const stream *s, const stream_buffers *w, const stream_part *part, int start,
                                   int keys, int64_t h, float *o, stream_ahead *ahead) {
    const char *from[STREAM_BLOCK];
    const int64_t last = s->rows - 1, wide = cpu_round_up(s->dv, SIDE), half = SIDE * wide * 2;
    const bool alike = part->low[0] == part->low[last] && part->high[0] == part->high[last];
    const int halves = (keys + SIDE - 1) / SIDE;
    const float *p = w->s + h * s->padded * STREAM_LDS;
    char *tiles = (char *)w->block + STREAM_BLOCK * s->pitch;
    bool finite = true;
    stream_from(part->v + start, keys, h * s->v_head, w->zeros, from);
    for (int i = 0; i < keys; i++)
        if (start + i < part->low[0] || start + i >= part->high[last]) from[i] = w->zeros;
    for (int i = 0; s->C != TRINE_BF16 && i < keys; i++) {
        char *to = (char *)w->block + i * s->pitch;
        if (from[i] == w->zeros) continue;
        stream_halve(from[i], s->dv, to, s->C);
        from[i] = to;
    }
    for (int i = 0; i < halves; i++) {
        if (alike)
            stream_interleave(from + i * SIDE, s->dv, tiles + i * half, ahead, false);
        else
            finite &= stream_interleave(from + i * SIDE, s->dv, tiles + i * half, ahead, true);
    }
    for (int64_t r = 0; finite && r < s->padded; r += s->high)
        stream_tile_values((const char *)(p + r * STREAM_LDS) + start * 2, tiles, halves, half, wide, o + r * s->ldo,
                           s->ldo);
    if (!finite) stream_values_apart(s, part, start, keys, from, p, o);
}

static void stream_columns_in_order(const stream *s, float *o) {
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t c = 0; c < s->dv; c += SIDE) stream_straighten(o + r * s->ldo + c);
}

/* Row r of head h of the queries, NULL for zeros: units of all rows of a tile side by side. */
static void stream_query_tile(const stream *s, const stream_buffers *w, int64_t h, int64_t r, const char *from) {
    const int64_t wide = cpu_round_up(s->d, SIDE), tile = r / s->high * s->high, step = s->high * 4;
    char *to = (char *)w->q + (h * s->padded + tile) * wide * 2 + (r - tile) * 4;
    int64_t c = 0;
    for (; from && c + 2 <= s->d; c += 2, to += step) memcpy(to, from + c * 2, 4);
    for (; c < wide; c += 2, to += step) {
        memset(to, 0, 4);
        if (from && c < s->d) memcpy(to, from + c * 2, 2);
    }
}
#else
/* A level without tiles has none of these called. */
INLINE void stream_tiles_for_keys(const stream *s) { (void)s; }
INLINE void stream_tiles_for_values(const stream *s) { (void)s; }
static void stream_end(const stream *s) { (void)s; }
INLINE void stream_scores_by_tiles(const stream *s, const stream_buffers *w, const stream_part *part, int start,
                                   int keys, int64_t h, stream_ahead *ahead) {
    (void)s, (void)w, (void)part, (void)start, (void)keys, (void)h, (void)ahead;
}
INLINE void stream_turn(const stream *s, const stream_buffers *w, int start) { (void)s, (void)w, (void)start; }
INLINE void stream_values_by_tiles(const stream *s, const stream_buffers *w, const stream_part *part, int start,
                                   int keys, int64_t h, float *o, stream_ahead *ahead) {
    (void)s, (void)w, (void)part, (void)start, (void)keys, (void)h, (void)o, (void)ahead;
}
INLINE void stream_columns_in_order(const stream *s, float *o) { (void)s, (void)o; }
INLINE void stream_query_tile(const stream *s, const stream_buffers *w, int64_t h, int64_t r, const char *from) {
    (void)s, (void)w, (void)h, (void)r, (void)from;
}
#endif

#endif
