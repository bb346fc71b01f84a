/* SPDX-License-Identifier: Apache-2.0 */
/* The vector vocabulary of the CPU backend: float and int32 vectors of the level's width, loads and stores of every
 * element type.
 *
 * Each <op>.c is compiled once per level over this header; the width follows from the compiler's target. All functions
 * are forced inline, so that an element type known at the call folds to a single conversion. Tails go through
 * vloadn/vstoren, which touch only the first n elements. */
#ifndef TRINE_VEC_H
#define TRINE_VEC_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <trine/base.h>

#if defined(__AVX512F__)
#define VB 64
#elif defined(__AVX2__)
#define VB 32
#else
#define VB 16
#endif

#define VL (VB / 4) /* floats in a vector */
#define INLINE static inline __attribute__((always_inline, unused))

typedef float vf __attribute__((vector_size(VB)));
typedef int32_t vi __attribute__((vector_size(VB)));
typedef uint32_t vu __attribute__((vector_size(VB)));
typedef uint16_t vh __attribute__((vector_size(VB / 2)));
typedef vf vf_any __attribute__((aligned(1), may_alias)); /* in memory, anywhere */
typedef vi vi_any __attribute__((aligned(1), may_alias));
typedef vh vh_any __attribute__((aligned(1), may_alias));

INLINE vf vset(float x) { return x - (vf){ 0 }; }
INLINE vi viset(int32_t x) { return x - (vi){ 0 }; }
INLINE vf vzero(void) { return (vf){ 0 }; }

/* mask ? a : b, element by element; a mask is all ones or all zeros, as comparisons give it. */
INLINE vf vsel(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
INLINE vi visel(vi mask, vi a, vi b) { return (mask & a) | (~mask & b); }

/* The larger and the smaller; the second argument where either is NaN. */
INLINE vf vmax(vf a, vf b) {
#if defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return vsel(a > b, a, b);
#endif
}
INLINE vf vmin(vf a, vf b) {
#if defined(__AVX512F__)
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return vsel(a < b, a, b);
#endif
}
INLINE vf vabs(vf a) { return (vf)((vi)a & 0x7fffffff); }
/* a b + c with one rounding where the level has FMA, with two where it has not. */
INLINE vf vfma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}
/* a b with its rounding: not fused to an addition, as the compiler may do of its own accord. */
INLINE vf vproduct(vf a, vf b) {
    vf r = a * b;
#if defined(__x86_64__)
    __asm__("" : "+v"(r));
#elif defined(__aarch64__)
    __asm__("" : "+w"(r));
#else
    for (int i = 0; i < VL; i++) {
        volatile float x = r[i];
        r[i] = x;
    }
#endif
    return r;
}
INLINE vf vsqrt(vf a) {
#if defined(__AVX512F__)
    return (vf)_mm512_sqrt_ps((__m512)a);
#elif defined(__AVX2__)
    return (vf)_mm256_sqrt_ps((__m256)a);
#else
    vf r = { 0 };
    for (int i = 0; i < VL; i++) r[i] = sqrtf(a[i]);
    return r;
#endif
}

/* Element i of the result is element i + half. */
INLINE vf vupper(vf a, int half) {
#if defined(__AVX512F__)
    if (half == 8) return (vf)_mm512_shuffle_f32x4((__m512)a, (__m512)a, 0xee);
    if (half == 4) return (vf)_mm512_shuffle_f32x4((__m512)a, (__m512)a, 0x55);
    return (vf)(half == 2 ? _mm512_permute_ps((__m512)a, 0xee) : _mm512_permute_ps((__m512)a, 0x55));
#elif defined(__AVX2__)
    if (half == 4) return (vf)_mm256_permute2f128_ps((__m256)a, (__m256)a, 0x11);
    return (vf)(half == 2 ? _mm256_permute_ps((__m256)a, 0xee) : _mm256_permute_ps((__m256)a, 0x55));
#else
    return half == 2 ? __builtin_shufflevector(a, a, 2, 3, 2, 3) : __builtin_shufflevector(a, a, 1, 1, 1, 1);
#endif
}

/* Element i of the result is element i ^ half, a power of two below VL that is known to the compiler. */
#define VEXCHANGE_4(h) 0 ^ h, 1 ^ h, 2 ^ h, 3 ^ h
#define VEXCHANGE_8(h) VEXCHANGE_4(h), 4 ^ h, 5 ^ h, 6 ^ h, 7 ^ h
#define VEXCHANGE_16(h) VEXCHANGE_8(h), 8 ^ h, 9 ^ h, 10 ^ h, 11 ^ h, 12 ^ h, 13 ^ h, 14 ^ h, 15 ^ h
INLINE vf vexchange(vf a, int half) {
#if VB == 64
    if (half == 8) return __builtin_shufflevector(a, a, VEXCHANGE_16(8));
    if (half == 4) return __builtin_shufflevector(a, a, VEXCHANGE_16(4));
    return half == 2 ? __builtin_shufflevector(a, a, VEXCHANGE_16(2)) : __builtin_shufflevector(a, a, VEXCHANGE_16(1));
#elif VB == 32
    if (half == 4) return __builtin_shufflevector(a, a, VEXCHANGE_8(4));
    return half == 2 ? __builtin_shufflevector(a, a, VEXCHANGE_8(2)) : __builtin_shufflevector(a, a, VEXCHANGE_8(1));
#else
    return half == 2 ? __builtin_shufflevector(a, a, VEXCHANGE_4(2)) : __builtin_shufflevector(a, a, VEXCHANGE_4(1));
#endif
}

/* Sum and maximum of the elements, always by halves: the order is part of the result. vhmax is NaN-blind. */
INLINE float vhsum(vf a) {
    for (int half = VL / 2; half > 0; half /= 2) a += vupper(a, half);
    return a[0];
}
INLINE float vhmax(vf a) {
    for (int half = VL / 2; half > 0; half /= 2) a = vmax(a, vupper(a, half));
    return a[0];
}
INLINE bool vany(vi mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}
INLINE bool vhasnan(vf a) { return vany(a != a); }

/* 0, 1, 2, ... */
INLINE vi viota(void) {
    vi r = { 0 };
    for (int i = 0; i < VL; i++) r[i] = i;
    return r;
}

/* ------------------------------------------------------------ conversions of 16-bit types, exact or to nearest even */

INLINE vf vf_from_bf16(vh h) {
#if defined(__AVX512F__) /* spelt out because GCC 12 widens by halves */
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)h), 16);
#elif defined(__AVX2__)
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)h), 16);
#else
    return (vf)(__builtin_convertvector(h, vu) << 16);
#endif
}

INLINE vh vf_to_bf16(vf x) {
    const vu bits = (vu)x;
    const vu rounded = bits + 0x7fff + ((bits >> 16) & 1);
    const vu r = (rounded >> 16) | ((vu)(x != x) & 0x7fc0); /* whatever rounding has made of a NaN, it is one again */
#if defined(__AVX512F__)
    return (vh)_mm512_cvtepi32_epi16((__m512i)r);
#elif defined(__AVX2__)
    return (vh)_mm_packus_epi32(_mm256_castsi256_si128((__m256i)r), _mm256_extracti128_si256((__m256i)r, 1));
#else
    return __builtin_convertvector(r, vh);
#endif
}

INLINE vf vf_from_f16(vh h) {
#if defined(__AVX512F__)
    return (vf)_mm512_cvtph_ps((__m256i)h);
#elif defined(__F16C__)
    return (vf)_mm256_cvtph_ps((__m128i)h);
#else
    const vu w = __builtin_convertvector(h, vu);
    const vu sign = (w & 0x8000) << 16, body = (w & 0x7fff) << 13;
    /* Rebias by multiplying by 2^112: exact, and subnormals come out normal. */
    const vf normal = (vf)body * vset(0x1p112f);
    const vu r = (vu)visel((vi)((w & 0x7c00) == 0x7c00), (vi)(body | 0x7f800000), (vi)normal);
    return (vf)(r | sign);
#endif
}

INLINE vh vf_to_f16(vf x) {
#if defined(__AVX512F__)
    return (vh)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__F16C__)
    return (vh)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
#else
    const vu bits = (vu)x, sign = (bits >> 16) & 0x8000, a = bits & 0x7fffffff;
    const vu normal = (a - 0x38000000 + 0xfff + ((a >> 13) & 1)) >> 13;
    /* Below 2^-14: adding 1/2 lets the adder do the rounding at 2^-24, the ulp of subnormals. */
    const vu subnormal = (vu)((vf)a + vset(0.5f)) - 0x3f000000;
    const vu infinite = (vu)visel((vi)(a > 0x7f800000), (vi)((vu)viset(0x7e00) | ((a >> 13) & 0x3ff)), viset(0x7c00));
    vu r = (vu)visel((vi)(a < 0x38800000), (vi)subnormal, (vi)normal);
    r = (vu)visel((vi)(a >= 0x47800000), (vi)infinite, (vi)r); /* 65520 and above round up to here by themselves */
    return __builtin_convertvector(r | sign, vh);
#endif
}

/* VL bytes as integers from 0 to 255. */
INLINE vi vload_u8(const void *data) {
#if defined(__AVX512F__)
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)data));
#elif defined(__AVX2__)
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)data));
#else
    const uint8_t *byte = data;
    return (vi){ byte[0], byte[1], byte[2], byte[3] };
#endif
}

/* ------------------------------ loads and stores of f32, bf16 and f16; `dtype` is a constant wherever speed matters */

/* Bytes of an element of any type: the code has the bits. */
INLINE size_t vsize(trine_dtype dtype) { return (size_t)dtype % 256 / 8; }

/* Elements i .. i+VL-1 of an array, as floats. */
INLINE vf vload(const void *data, trine_dtype dtype, int64_t i) {
    if (dtype == TRINE_F32) return *(const vf_any *)((const float *)data + i);
    const vh h = *(const vh_any *)((const uint16_t *)data + i);
    return dtype == TRINE_BF16 ? vf_from_bf16(h) : vf_from_f16(h);
}

/* Elements i .. i+n-1, 0 <= n < VL; the rest of the vector is `fill`. */
INLINE vf vloadn(const void *data, trine_dtype dtype, int64_t i, int n, float fill) {
    vf r;
    if (dtype == TRINE_F32) {
        float x[VL] = { 0 };
        memcpy(x, (const float *)data + i, (size_t)n * 4);
        memcpy(&r, x, sizeof r);
    } else {
        vh h = { 0 };
        memcpy(&h, (const uint16_t *)data + i, (size_t)n * 2);
        r = dtype == TRINE_BF16 ? vf_from_bf16(h) : vf_from_f16(h);
    }
    return vsel(viota() < n, r, vset(fill));
}

/* Rounds once, to nearest even. */
INLINE void vstore(void *data, trine_dtype dtype, int64_t i, vf x) {
    if (dtype == TRINE_F32)
        *(vf_any *)((float *)data + i) = x;
    else
        *(vh_any *)((uint16_t *)data + i) = dtype == TRINE_BF16 ? vf_to_bf16(x) : vf_to_f16(x);
}
INLINE void vstoren(void *data, trine_dtype dtype, int64_t i, int n, vf x) {
    if (dtype == TRINE_F32) {
        memcpy((float *)data + i, &x, (size_t)n * 4);
    } else {
        const vh h = dtype == TRINE_BF16 ? vf_to_bf16(x) : vf_to_f16(x);
        memcpy((uint16_t *)data + i, &h, (size_t)n * 2);
    }
}

/* Stores past the caches, at a multiple of the stored bytes; and what must follow them before another thread may
 * look. */
INLINE void vstream(void *data, trine_dtype dtype, int64_t i, vf x) {
#if defined(__x86_64__)
    if (dtype == TRINE_F32) {
        float *at = (float *)data + i;
#if defined(__AVX512F__)
        _mm512_stream_ps(at, (__m512)x);
#elif defined(__AVX2__)
        _mm256_stream_ps(at, (__m256)x);
#else
        _mm_stream_ps(at, (__m128)x);
#endif
        return;
    }
    const vh h = dtype == TRINE_BF16 ? vf_to_bf16(x) : vf_to_f16(x);
    void *at = (uint16_t *)data + i;
#if defined(__AVX512F__)
    _mm256_stream_si256(at, (__m256i)h);
#elif defined(__AVX2__)
    _mm_stream_si128(at, (__m128i)h);
#else
    _mm_stream_si64(at, (long long)h);
#endif
#else
    vstore(data, dtype, i, x);
#endif
}
INLINE void stream_fence(void) {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* One element. */
INLINE float sload(const void *data, trine_dtype dtype, int64_t i) {
    return dtype == TRINE_F32 ? ((const float *)data)[i] : vloadn(data, dtype, i, 1, 0)[0];
}
INLINE void sstore(void *data, trine_dtype dtype, int64_t i, float x) {
    if (dtype == TRINE_F32)
        ((float *)data)[i] = x;
    else
        vstoren(data, dtype, i, 1, vset(x));
}

/* Calls body(..., T) with T a constant equal to `dtype`, so that `body`, an INLINE function, is specialised. */
#define FOR_TYPE(dtype, body, ...) \
    do { \
        if ((dtype) == TRINE_F32) \
            body(__VA_ARGS__, TRINE_F32); \
        else if ((dtype) == TRINE_BF16) \
            body(__VA_ARGS__, TRINE_BF16); \
        else \
            body(__VA_ARGS__, TRINE_F16); \
    } while (0)

#endif
