/* SPDX-License-Identifier: Apache-2.0 */
/* The four 8-bit floating-point types as vectors: read exactly, and written with one rounding to nearest even; and
 * scales. */
#ifndef TRINE_CPU_FLOAT8_H
#define TRINE_CPU_FLOAT8_H

#include "vec.h"

typedef uint8_t vb __attribute__((vector_size(VL))); /* VL bytes */

/* Sign, exponent, `fraction` bits. Codes above `most`, the largest finite value's, are Inf (e5m2) and NaN;
 * fnuz types have only 0x80 for NaN. */
typedef struct float8 {
    int fraction, bias, most;
    bool inf, fnuz;
} float8;

INLINE float8 float8_of(trine_dtype dtype) {
    switch (dtype) {
    case TRINE_E4M3: return (float8){ 3, 7, 0x7e, false, false };
    case TRINE_E4M3FNUZ: return (float8){ 3, 8, 0x7f, false, true };
    case TRINE_E5M2: return (float8){ 2, 15, 0x7b, true, false };
    default: return (float8){ 2, 16, 0x7f, false, true };
    }
}

/* Bytes to 32 bits and back; the compiler would go element by element. */
INLINE vi vb_widen(vb bytes) {
#if defined(__AVX512F__)
    return (vi)_mm512_cvtepu8_epi32((__m128i)bytes);
#elif defined(__AVX2__)
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)&bytes));
#else
    return __builtin_convertvector(bytes, vi);
#endif
}
INLINE vb vb_narrow(vi x) {
#if defined(__AVX512F__)
    return (vb)_mm512_cvtepi32_epi8((__m512i)x);
#elif defined(__AVX2__)
    const __m256i by_half = _mm256_shuffle_epi8((__m256i)x, _mm256_set1_epi32(0x0c080400));
    const __m256i packed = _mm256_permutevar8x32_epi32(by_half, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
    vb bytes;
    _mm_storel_epi64((__m128i *)&bytes, _mm256_castsi256_si128(packed));
    return bytes;
#else
    return __builtin_convertvector(x, vb);
#endif
}

/* Of codes in the low 8 bits of each lane. */
INLINE vf vf_from_codes(vi code, trine_dtype dtype) {
    const float8 f = float8_of(dtype);
    const vi body = code & 0x7f;
    const vi normal = (body << (23 - f.fraction)) + ((127 - f.bias) << 23);
    const vf subnormal = __builtin_convertvector(body, vf) * (2.0f / (float)(1 << (f.bias + f.fraction)));
    vi r = visel(body < (1 << f.fraction), (vi)subnormal, normal);
    if (f.fnuz) {
        r = visel(code == 0x80, viset(0x7fc00000), r);
    } else {
        const vi beyond = f.inf ? visel(body == 0x7c, viset(0x7f800000), viset(0x7fc00000)) : viset(0x7fc00000);
        r = visel(body > f.most, beyond, r);
    }
    return (vf)((vu)r | (vu)(code & 0x80) << 24);
}
/* Scales: the exponents of floats, but for the smallest, which is subnormal there. */
INLINE vf vf_from_e8m0(vb bytes) {
    const vi code = vb_widen(bytes);
    return (vf)visel(code == 0, viset(0x00400000), visel(code == 0xff, viset(0x7fc00000), code << 23));
}
INLINE float e8m0_read(uint8_t code) {
    const uint32_t bits = code == 0 ? 0x00400000 : code == 0xff ? 0x7fc00000 : (uint32_t)code << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* To the nearest power of two, up from the middle; NaN of what is negative or beyond the largest. */
INLINE uint8_t e8m0_write(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (!(x >= 0)) return 0xff;
    bits &= 0x7fffffff; /* of -0 */
    if (bits < 0x00800000) return bits >= 0x00600000;
    return bits < 0x7f800000 ? (uint8_t)((bits + 0x00400000) >> 23) : 0xff;
}
INLINE vf vf_from_float8(vb bytes, trine_dtype dtype) { return vf_from_codes(vb_widen(bytes), dtype); }

/* Beyond the largest finite value, Inf included: that value if `saturate`, else Inf, or NaN where there is none. */
INLINE vb vf_to_float8(vf x, trine_dtype dtype, bool saturate) {
    const float8 f = float8_of(dtype);
    const int drop = 23 - f.fraction, nan = f.fnuz ? 0x80 : 0x7f;
    const vi a = (vi)vabs(x);
    const vi rounded = (vi)((vu)a + ((1u << (drop - 1)) - 1) + (((vu)a >> drop) & 1));
    const vi normal = (vi)((vu)rounded >> drop) - ((127 - f.bias) << f.fraction);
    /* Below the smallest normal, 2^(1-bias): added to 2^(24-bias-fraction), whose ulp is that of the subnormals, the
     * sum rounds by itself. */
    const vi anchor = viset((127 + 24 - f.bias - f.fraction) << 23);
    const vi subnormal = (vi)((vf)a + (vf)anchor) - anchor;
    vi r = visel(a < ((128 - f.bias) << 23), subnormal, normal);
    r = visel(r > f.most, viset(saturate ? f.most : f.inf ? 0x7c : nan), r);
    vi sign = (vi)((vu)x >> 24) & 0x80;
    if (f.fnuz) sign &= r != 0;
    return vb_narrow(visel(a > 0x7f800000, viset(nan), r | sign));
}

#endif
