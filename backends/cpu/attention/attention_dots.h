/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bf16 by dots of pairs, or by AMX where the level has it: what attention and its gradient are made of
 * where their inputs are bf16.
 *
 * A product has SIDE rows and columns. Its left operand lies as rows do; the right one in a panel: for each unit, two
 * elements that are consecutive in what is summed over, SIDE columns. */
#ifndef TRINE_CPU_ATTENTION_DOTS_H
#define TRINE_CPU_ATTENTION_DOTS_H

#include "attention_tile.h"
#include "backends/cpu/matmul/matmul_tile.h"

/* Are dots the way for bf16? Cores of Intel's without AMX do half as many flops by them as by FMA. */
INLINE bool dots_pay(void) {
#if defined(__x86_64__)
    return HAVE_TILES || (HAVE_DOTS && !__builtin_cpu_is("intel"));
#else
    return HAVE_DOTS;
#endif
}

enum { SIDE = 32, LINE = SIDE * 4 }; /* LINE: bytes of a unit's columns */

/* Bytes of rows of n elements, padded to whole squares of units, with a distance that spreads over the cache's sets. */
INLINE int64_t dots_pitch(int64_t n) {
    const int64_t bytes = cpu_round_up(n, SIDE) * 2;
    return bytes / 64 % 2 ? bytes : bytes + 64;
}

/* --------------------------------------------------------------------------------------------------------- elements */

/* Two vectors rounded to bf16, one behind the other. */
INLINE vi dots_round(vf first, vf second) {
#if defined(__AVX512BF16__)
    return (vi)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
#else
    const vh x = vf_to_bf16(first), y = vf_to_bf16(second);
    vi r;
    memcpy(&r, &x, sizeof x);
    memcpy((char *)&r + sizeof x, &y, sizeof y);
    return r;
#endif
}

/* Units of the elements of both halves: x[i] and x[VL + i]. */
INLINE vi dots_zip(vi x) {
    const vs y = (vs)x;
#if VB == 64
    return (vi)__builtin_shufflevector(y, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10,
                                       26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif VB == 32
    return (vi)__builtin_shufflevector(y, y, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    return (vi)__builtin_shufflevector(y, y, 0, 4, 1, 5, 2, 6, 3, 7);
#endif
}

/* VL elements of each of two rows. */
INLINE vi dots_halves(const char *first, const char *second) {
#if defined(__AVX512BW__)
    return (vi)_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i_u *)first)),
                                  _mm256_loadu_si256((const __m256i_u *)second), 1);
#else
    vi r;
    memcpy(&r, first, sizeof r / 2);
    memcpy((char *)&r + sizeof r / 2, second, sizeof r / 2);
    return r;
#endif
}

/* 2^x for x <= 1; 0 where that is below the smallest normal. The polynomial is within 1.4 ulp of the remainder's
 * power. */
INLINE vf dots_remainder(vf r) {
    vf p = vfma(r, vset(0x1.5bba14p-10f), vset(0x1.3cea88p-7f));
    p = vfma(p, r, vset(0x1.c6b752p-5f));
    p = vfma(p, r, vset(0x1.ebf9bcp-3f));
    p = vfma(p, r, vset(0x1.62e42ap-1f));
    return vfma(p, r, vset(1.0f));
}
INLINE vf dots_power(vf x) {
#if defined(__AVX512F__)
    const vf r = (vf)_mm512_reduce_ps((__m512)x, 0), n = x - r;
    const __mmask16 normal = _mm512_cmp_ps_mask((__m512)x, (__m512)vset(-126.0f), _CMP_NLT_UQ); /* or NaN */
    return (vf)_mm512_maskz_scalef_ps(normal, (__m512)dots_remainder(r), (__m512)n);
#else
    const vf magic = vset(0x1.8p23f), bounded = vmax(vset(-126.0f), x), t = bounded + magic;
    const vf p = dots_remainder(bounded - (t - magic));
    return (vf)((vi)(p * (vf)(((vi)t + 127) << 23)) & ~(x < -126.0f));
#endif
}

/* Bit 15 of an element of `seen` is set once one of x was not finite. */
typedef uint16_t vhu __attribute__((vector_size(VB)));
INLINE vhu dots_see(vhu seen, vi x) { return seen | (((vhu)x & 0x7fff) + 0x80); }
INLINE bool dots_finite(vhu seen) { return !vany(((vi)seen & (int)0x80008000) != 0); }

/* --------------------------------------------------------------------------------------------------------- packing */

/* 2 VL elements from `from` on, of which n exist, perhaps none. */
INLINE vi dots_part(const char *from, int64_t n) {
    if (n >= 2 * VL) return unit_load(from);
    vi r = { 0 };
    if (n > 0) memcpy(&r, from, (size_t)n * 2);
    return r;
}

/* Rows of n elements, `step` bytes apart, as they are, padded with zeros to whole squares. */
static inline void dots_row(const char *from, int64_t n, char *to) {
    int64_t c = 0;
    for (; c + 2 * VL <= n; c += 2 * VL) unit_store(to + c * 2, unit_load(from + c * 2));
    for (; c < cpu_round_up(n, SIDE); c += 2 * VL) unit_store(to + c * 2, dots_part(from + c * 2, n - c));
}

/* A panel whose columns are rows of memory, at most SIDE of them; pairs are neighbours in a row. Adds to *seen. */
static inline void dots_columns(const char *from, int64_t step, int64_t rows, int64_t n, char *panel, vhu *seen) {
    vhu all = *seen;
    for (int first = 0; first < SIDE; first += VL)
        for (int64_t u = 0; u < cpu_round_up(n, SIDE) / 2; u += VL) {
            const char *at = from + first * step + u * 4;
            const bool whole = first + VL <= rows && (u + VL) * 2 <= n;
            vi r[VL];
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++)
                r[i] = whole              ? unit_load(at + i * step)
                       : first + i < rows ? dots_part(at + i * step, n - u * 2)
                                          : (vi){ 0 };
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) all = dots_see(all, r[i]);
            unit_transpose(r, UNIT_BF16);
#pragma GCC unroll 16
            for (int i = 0; i < VL; i++) unit_store(panel + (u + i) * LINE + first * 4, r[i]);
        }
    *seen = all;
}

/* Panels of SIDE columns each, `panel` bytes apart, whose pairs are two rows of memory; `padded`, a multiple of SIDE,
 * as if rows of zeros followed. */
static inline void dots_pairs(const char *from, int64_t step, int64_t rows, int64_t padded, int64_t n, char *to,
                              int64_t panel, vhu *seen) {
    vhu all = *seen;
    for (int64_t r = 0; r < padded; r += 2, from += 2 * step, to += LINE) {
        for (int64_t line = 0; r + 8 < rows && line < n * 2; line += 64) {
            __builtin_prefetch(from + 8 * step + line);
            __builtin_prefetch(from + 9 * step + line);
        }
        for (int64_t c = 0; c < cpu_round_up(n, SIDE); c += VL) {
            char halves[2][VB / 2] = { { 0 } };
            vi x = { 0 };
            if (r + 1 < rows && c + VL <= n) {
                x = dots_halves(from + c * 2, from + step + c * 2);
            } else if (r < rows && c < n) {
                const size_t bytes = (size_t)(n - c < VL ? n - c : VL) * 2;
                memcpy(halves[0], from + c * 2, bytes);
                if (r + 1 < rows) memcpy(halves[1], from + step + c * 2, bytes);
                x = dots_halves(halves[0], halves[1]);
            }
            all = dots_see(all, x);
            unit_store(to + c / SIDE * panel + c % SIDE * 4, dots_zip(x));
        }
    }
    *seen = all;
}

/* --------------------------------------------------------------------------------------------------------- products */

/* c = [c +] a b: SIDE rows of c, `ldc` floats apart, and of a, `pitch` bytes apart; units: a multiple of SIDE / 2. */
#if defined(__AMX_TILE__)
INLINE void dots_product(float *c, int64_t ldc, const char *a, int64_t pitch, const char *b, int64_t units,
                         bool accumulate) {
    enum { HALF = SIDE / 2 };
    __asm__ volatile("" ::: "memory"); /* tiles are loaded behind the compiler's back */
    if (accumulate) {
        _tile_loadd(0, c, ldc * 4);
        _tile_loadd(1, c + HALF, ldc * 4);
        _tile_loadd(2, c + HALF * ldc, ldc * 4);
        _tile_loadd(3, c + HALF * ldc + HALF, ldc * 4);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t u = 0; u < units; u += HALF, a += 4 * HALF, b += HALF * LINE) {
        _tile_loadd(6, b, LINE);
        _tile_loadd(4, a, pitch);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, a + HALF * pitch, pitch);
        _tile_dpbf16ps(2, 5, 6);
        _tile_loadd(7, b + 4 * HALF, LINE);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, ldc * 4);
    _tile_stored(1, c + HALF, ldc * 4);
    _tile_stored(2, c + HALF * ldc, ldc * 4);
    _tile_stored(3, c + HALF * ldc + HALF, ldc * 4);
    __asm__ volatile("" ::: "memory");
}
#else
/* 8 rows and 2 vectors of columns, by instructions for pairs of both. */
INLINE void dots_product_pairs(float *c, int64_t ldc, const char *a, int64_t pitch, const char *b, int64_t units,
                               bool accumulate) {
    enum { VECTORS_OF_B = 2 };
    sum s[PAIR_ROWS][PAIR_COLUMNS];
    pairs_multiply(s, (unit_grid){ a, pitch, 4 }, (unit_grid){ b, 4, LINE }, units, PAIR_ROWS, VECTORS_OF_B, UNIT_BF16);
#pragma GCC unroll 8
    for (int i = 0; i < 2 * PAIR_ROWS; i++)
#pragma GCC unroll 2
        for (int j = 0; j < VECTORS_OF_B; j++) {
            const vf x = (vf)pairs_vector(s, i, j, UNIT_BF16);
            put(c + i * ldc + j * VL, accumulate ? get(c + i * ldc + j * VL) + x : x);
        }
}
INLINE void dots_product(float *c, int64_t ldc, const char *a, int64_t pitch, const char *b, int64_t units,
                         bool accumulate) {
    enum { HIGH = 8, WIDE = SIDE / VL < 2 ? 1 : 2 };
    for (int r = 0; r < SIDE; r += HIGH)
        for (int j = 0; j < SIDE; j += WIDE * VL) {
            if (HAVE_PAIRS) {
                dots_product_pairs(c + r * ldc + j, ldc, a + r * pitch, pitch, b + j * 4, units, accumulate);
                continue;
            }
            sum s[HIGH][WIDE];
            float *to = c + r * ldc + j;
            const char *left = a + r * pitch, *right = b + j * 4;
#pragma GCC unroll 8
            for (int i = 0; i < HIGH; i++)
#pragma GCC unroll 2
                for (int v = 0; v < WIDE; v++)
                    s[i][v] = (sum){ .f = accumulate ? get(to + i * ldc + v * VL) : vzero() };
            for (int64_t u = 0; u < units; u++, left += 4, right += LINE) {
                vi x[WIDE];
#pragma GCC unroll 2
                for (int v = 0; v < WIDE; v++) x[v] = unit_load(right + v * VB);
#pragma GCC unroll 8
                for (int i = 0; i < HIGH; i++) {
                    const vi y = unit_broadcast(left + i * pitch, UNIT_BF16);
#pragma GCC unroll 2
                    for (int v = 0; v < WIDE; v++) s[i][v] = sum_mac(s[i][v], y, x[v], UNIT_BF16);
                }
            }
#pragma GCC unroll 8
            for (int i = 0; i < HIGH; i++)
#pragma GCC unroll 2
                for (int v = 0; v < WIDE; v++) put(to + i * ldc + v * VL, s[i][v].f);
        }
}
#endif

#endif
