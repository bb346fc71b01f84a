/* SPDX-License-Identifier: Apache-2.0 */
/* Units: what the matrix product multiplies. A unit holds the elements of an operand that one lane of a
 * multiply-accumulate takes, 1, 2 or 4 consecutive in k; vectors of units are all `vi`, whatever they hold. Everything
 * here is specialised by a constant `kind`. */
#ifndef TRINE_CPU_MATMUL_UNIT_H
#define TRINE_CPU_MATMUL_UNIT_H

#include "backends/cpu/core/float8.h"
#include "backends/cpu/core/order.h"

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>
#endif

typedef enum unit_kind {
    UNIT_F32,  /* a float, from f32, f16, bf16 or float8 */
    UNIT_F64,  /* a double */
    UNIT_BF16, /* two bf16, or two float8 as such, by AVX512_BF16, AMX or bfdot */
    UNIT_I16,  /* two int16, from i8: pmaddwd */
    UNIT_I8    /* four i8, by AVX512_VNNI, AMX or sdot */
} unit_kind;

#if defined(__AMX_TILE__)
enum { HAVE_DOTS = 1, HAVE_TILES = 1 };
#elif defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
enum { HAVE_DOTS = 1, HAVE_TILES = 0 };
#else
enum { HAVE_DOTS = 0, HAVE_TILES = 0 };
#endif
enum { UNIT_INTEGER = HAVE_DOTS ? UNIT_I8 : UNIT_I16 };
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && defined(__ARM_FEATURE_MATMUL_INT8)
#define HAVE_PAIRS 1 /* bfmmla and smmla */
#else
#define HAVE_PAIRS 0
#endif

typedef double vd __attribute__((vector_size(VB)));
typedef int64_t vl __attribute__((vector_size(VB)));
typedef int16_t vs __attribute__((vector_size(VB)));
typedef int8_t vq_half __attribute__((vector_size(VB / 2)));
typedef uint8_t vqu_quarter __attribute__((vector_size(VB / 4)));

INLINE unit_kind unit_of(trine_dtype dtype) {
    switch (dtype) {
    case TRINE_F64: return UNIT_F64;
    case TRINE_I8: return (unit_kind)UNIT_INTEGER;
    case TRINE_BF16:
    case TRINE_E4M3:
    case TRINE_E5M2: return HAVE_DOTS ? UNIT_BF16 : UNIT_F32;
    default: return UNIT_F32;
    }
}

/* Bytes of an element in memory. */
INLINE int unit_element(trine_dtype dtype) {
    return dtype == TRINE_F64 ? 8 : dtype == TRINE_F32 ? 4 : dtype == TRINE_F16 || dtype == TRINE_BF16 ? 2 : 1;
}
INLINE bool unit_float8(trine_dtype dtype) { return dtype == TRINE_E4M3 || dtype == TRINE_E5M2; }

/* Consecutive k in a unit; bytes of a unit; units in a vector. */
INLINE int unit_depth(unit_kind kind) { return kind == UNIT_I8 ? 4 : kind == UNIT_BF16 || kind == UNIT_I16 ? 2 : 1; }
INLINE int unit_bytes(unit_kind kind) { return kind == UNIT_F64 ? 8 : 4; }
INLINE int unit_lanes(unit_kind kind) { return VB / unit_bytes(kind); }

/* Calls body(..., KIND) with the constant that equals `kind`, of those this level has. */
#define FOR_UNIT(kind, body, ...) \
    do { \
        if ((kind) == UNIT_F32) \
            body(__VA_ARGS__, UNIT_F32); \
        else if ((kind) == UNIT_F64) \
            body(__VA_ARGS__, UNIT_F64); \
        else if (HAVE_DOTS && (kind) == UNIT_BF16) \
            body(__VA_ARGS__, UNIT_BF16); \
        else \
            body(__VA_ARGS__, (unit_kind)UNIT_INTEGER); \
    } while (0)

/* A vector of sums: in the field of its kind only, for GCC keeps vectors in registers across a loop only if they do not
 * change type. */
typedef struct sum {
    vf f; /* UNIT_F32, UNIT_BF16 */
    vd d; /* UNIT_F64 */
    vu i; /* modulo 2^32 */
} sum;

INLINE vi sum_vector(sum s, unit_kind kind) {
    return kind == UNIT_F64 ? (vi)s.d : kind == UNIT_F32 || kind == UNIT_BF16 ? (vi)s.f : (vi)s.i;
}

/* AVX512_VNNI takes a's bytes without a sign: they are stored as a + 128, and 128 times the sum of b is taken off
 * again. */
INLINE bool unit_unsigned(unit_kind kind) {
#if defined(__aarch64__)
    (void)kind;
    return false;
#else
    return kind == UNIT_I8;
#endif
}

/* sum + a b in every lane. UNIT_I8: a is unsigned where unit_unsigned says so. bf16 dots flush subnormals both ways;
 * AVX512_BF16 rounds to nearest. bfdot rounds to odd, off by up to twice as much, but once for the two products of a
 * unit and once for their sum with s: k / 2 + 1 times 2 u, within the k + 4 of the bound. */
INLINE sum sum_mac(sum s, vi a, vi b, unit_kind kind) {
    if (kind == UNIT_F32) return (sum){ .f = vfma((vf)a, (vf)b, s.f) };
    if (kind == UNIT_F64) return (sum){ .d = (vd)a * (vd)b + s.d };
#if defined(__AVX512BF16__)
    if (kind == UNIT_BF16) return (sum){ .f = (vf)_mm512_dpbf16_ps((__m512)s.f, (__m512bh)a, (__m512bh)b) };
    return (sum){ .i = (vu)_mm512_dpbusd_epi32((__m512i)s.i, (__m512i)a, (__m512i)b) };
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    if (kind == UNIT_BF16) return (sum){ .f = (vf)vbfdotq_f32((float32x4_t)s.f, (bfloat16x8_t)a, (bfloat16x8_t)b) };
    return (sum){ .i = (vu)vdotq_s32((int32x4_t)s.i, (int8x16_t)a, (int8x16_t)b) };
#elif defined(__AVX512BW__)
    return (sum){ .i = s.i + (vu)_mm512_madd_epi16((__m512i)a, (__m512i)b) };
#elif defined(__AVX2__)
    return (sum){ .i = s.i + (vu)_mm256_madd_epi16((__m256i)a, (__m256i)b) };
#elif defined(__SSE2__)
    return (sum){ .i = s.i + (vu)_mm_madd_epi16((__m128i)a, (__m128i)b) };
#else
    const vi low = ((vi)((vu)a << 16) >> 16) * ((vi)((vu)b << 16) >> 16), high = (a >> 16) * (b >> 16);
    return (sum){ .i = s.i + (vu)low + (vu)high };
#endif
}

#if HAVE_PAIRS
/* sum + a b^T of 2 x 2: each operand holds two units of one lane and then two of another. Of bf16 it is what two dots
 * one after the other give. */
INLINE sum sum_mac_pairs(sum s, vi a, vi b, unit_kind kind) {
    if (kind == UNIT_BF16) return (sum){ .f = (vf)vbfmmlaq_f32((float32x4_t)s.f, (bfloat16x8_t)a, (bfloat16x8_t)b) };
    return (sum){ .i = (vu)vmmlaq_s32((int32x4_t)s.i, (int8x16_t)a, (int8x16_t)b) };
}
#endif

/* In each pair of bytes u0 s0 + u1 s1 as int16, of bytes without a sign, below 128, and with one. */
INLINE vs unit_byte_pairs(vi u, vi s) {
#if defined(__AVX512BW__)
    return (vs)_mm512_maddubs_epi16((__m512i)u, (__m512i)s);
#elif defined(__AVX2__)
    return (vs)_mm256_maddubs_epi16((__m256i)u, (__m256i)s);
#else
    const vs x = (vs)u, y = (vs)s;
    return (x & 0xff) * (vs)((vs)(y << 8) >> 8) + (x >> 8) * (y >> 8);
#endif
}

/* The sum plus x, lane by lane. */
INLINE sum sum_add(sum s, vi x, unit_kind kind) {
    if (kind == UNIT_F64) return (sum){ .d = (vd)x + s.d };
    if (kind == UNIT_F32 || kind == UNIT_BF16) return (sum){ .f = (vf)x + s.f };
    return (sum){ .i = (vu)x + s.i };
}

INLINE vi unit_load(const void *from) { return *(const vi_any *)from; }
INLINE void unit_store(void *to, vi x) { *(vi_any *)to = x; }

/* One unit in every lane. */
INLINE vi unit_broadcast(const void *from, unit_kind kind) {
    if (kind == UNIT_F64) {
        double x;
        memcpy(&x, from, 8);
        return (vi)(x - (vd){ 0 });
    }
    int32_t x;
    memcpy(&x, from, 4);
    return viset(x);
}

/* ------------------------------------------------------------------------------------------------- reading operands */

/* Consecutive elements, one to a lane; those narrower than a lane are in its low bits, but floating-point ones come as
 * floats. */
INLINE vi unit_widen(const char *src, trine_dtype dtype) {
    if (dtype == TRINE_F64) return unit_load(src);
    if (unit_float8(dtype)) {
        vb x;
        memcpy(&x, src, sizeof x);
        return (vi)vf_from_float8(x, dtype);
    }
    if (dtype != TRINE_I8) return (vi)vload(src, dtype, 0);
#if defined(__AVX512F__) /* spelt out because GCC 12 widens by halves */
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)src));
#elif defined(__AVX2__)
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)src));
#else
    vqu_quarter x;
    memcpy(&x, src, sizeof x);
    return __builtin_convertvector(x, vi);
#endif
}

/* The int16 pairs of two lines of int8. */
INLINE vi unit_pairs(const char *first, const char *second) {
#if defined(__AVX512BW__)
    const __m128i x = _mm_loadu_si128((const __m128i *)first), y = _mm_loadu_si128((const __m128i *)second);
    return (vi)_mm512_cvtepi8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(x, y), _mm_unpacklo_epi8(x, y)));
#elif defined(__AVX2__)
    return (vi)_mm256_cvtepi8_epi16(
        _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)first), _mm_loadl_epi64((const __m128i *)second)));
#else
    const vi x = unit_widen(first, TRINE_I8), y = unit_widen(second, TRINE_I8);
    const vi low = LITTLE ? x : y, high = LITTLE ? y : x;
    return (((vi)((vu)low << 24) >> 24) & 0xffff) | (((vi)((vu)high << 24) >> 8) & (int)0xffff0000);
#endif
}

/* A vector of units of neighbouring lanes, which are neighbours in memory; elements of k are `along` bytes apart. */
INLINE vi unit_across(const char *src, int64_t along, unit_kind kind, trine_dtype dtype) {
    if (unit_depth(kind) == 1) return unit_widen(src, dtype);
    if (kind == UNIT_I16) return unit_pairs(src, src + along);
#if defined(__AVX512BF16__)
    if (dtype == TRINE_BF16)
        return (vi)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)src)) |
               (vi)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(src + along))), 16);
#endif
    const int bits = 32 / unit_depth(kind);
    vu r = { 0 };
#pragma GCC unroll 4
    for (int p = 0; p < unit_depth(kind); p++) {
        vu x = (vu)unit_widen(src + p * along, dtype);
        if (kind == UNIT_BF16) x >>= 16;
        r |= x << word_place(p, bits, 32);
    }
    return (vi)r;
}

/* A vector of units of a single lane, consecutive in k. */
INLINE vi unit_along(const char *src, unit_kind kind, trine_dtype dtype) {
    if (kind == UNIT_F32) return unit_widen(src, dtype);
    if (kind == UNIT_BF16 && unit_float8(dtype)) {
        const vi pairs = (vi)((vu)vf_from_bf16(*(const vh_any *)src) >> 16);
        return (vi)((vu)vf_from_codes(pairs & 0xff, dtype) >> 16) |
               ((vi)vf_from_codes(pairs >> 8, dtype) & (int)0xffff0000);
    }
    if (kind != UNIT_I16) return unit_load(src);
#if defined(__AVX512BW__)
    return (vi)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)src));
#elif defined(__AVX2__)
    return (vi)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)src));
#else
    vq_half x;
    memcpy(&x, src, sizeof x);
    return (vi) __builtin_convertvector(x, vs);
#endif
}

/* ------------------------------------------------------------------------------------------------------ transposing */

/* a0 b0 a1 b1 ... of the lower and of the upper halves. */
INLINE vi unit_zip(vi a, vi b, bool upper, unit_kind kind) {
#if VB == 64
    const vl al = (vl)a, bl = (vl)b;
    if (kind == UNIT_F64)
        return upper ? (vi)__builtin_shufflevector(al, bl, 4, 12, 5, 13, 6, 14, 7, 15)
                     : (vi)__builtin_shufflevector(al, bl, 0, 8, 1, 9, 2, 10, 3, 11);
    return upper ? __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
                 : __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif VB == 32
    const vl al = (vl)a, bl = (vl)b;
    if (kind == UNIT_F64)
        return upper ? (vi)__builtin_shufflevector(al, bl, 2, 6, 3, 7)
                     : (vi)__builtin_shufflevector(al, bl, 0, 4, 1, 5);
    return upper ? __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
                 : __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
    const vl al = (vl)a, bl = (vl)b;
    if (kind == UNIT_F64)
        return upper ? (vi)__builtin_shufflevector(al, bl, 1, 3) : (vi)__builtin_shufflevector(al, bl, 0, 2);
    return upper ? __builtin_shufflevector(a, b, 2, 6, 3, 7) : __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}

/* Transposes the square of unit_lanes(kind) vectors: each round of perfect shuffles rotates the bits of the place by
 * one. */
INLINE void unit_transpose(vi *r, unit_kind kind) {
    const int lanes = unit_lanes(kind);
#pragma GCC unroll 4
    for (int round = 1; round < lanes; round *= 2) {
        vi x[VL];
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++) x[i] = unit_zip(r[i / 2], r[i / 2 + lanes / 2], i % 2, kind);
#pragma GCC unroll 16
        for (int i = 0; i < lanes; i++) r[i] = x[i];
    }
}

#endif
