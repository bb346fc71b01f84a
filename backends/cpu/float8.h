/* SPDX-License-Identifier: Apache-2.0 */
/* The four 8-bit floating-point types as vectors: read exactly, and written with one rounding to nearest even. */
#ifndef TRINE_CPU_FLOAT8_H
#define TRINE_CPU_FLOAT8_H

#include "vec.h"

typedef uint8_t vb __attribute__((vector_size(VL))); /* VL bytes */
typedef vb vb_any __attribute__((aligned(1), may_alias));

/* Sign, exponent, `fraction` bits. Codes above `most`, the largest finite value's, are Inf (e5m2) and NaN; fnuz types have only 0x80 for NaN. */
typedef struct float8 {
    int fraction, bias;
    uint32_t most;
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

INLINE vf vf_from_float8(vb bytes, trine_dtype dtype) {
    const float8 f = float8_of(dtype);
    const vu code = __builtin_convertvector(bytes, vu), body = code & 0x7f;
    const vu normal = (body << (23 - f.fraction)) + ((uint32_t)(127 - f.bias) << 23);
    const vf subnormal = __builtin_convertvector((vi)body, vf) * (f.fraction == 3 ? 0x1p-3f : 0x1p-2f) * (float)(2.0 / (1u << f.bias));
    vi r = visel((vi)(body < (1u << f.fraction)), (vi)subnormal, (vi)normal);
    if (f.fnuz) {
        r = visel((vi)(code == 0x80), viset(0x7fc00000), r);
    } else {
        const vi infinite = visel((vi)(body == 0x7c), viset(0x7f800000), viset(0x7fc00000));
        r = visel((vi)(body > f.most), f.inf ? infinite : viset(0x7fc00000), r);
    }
    return (vf)(r | (vi)((code & 0x80) << 24));
}

/* Beyond the largest finite value, Inf included: that value if `saturate`, else Inf, or NaN where there is none. */
INLINE vb vf_to_float8(vf x, trine_dtype dtype, bool saturate) {
    const float8 f = float8_of(dtype);
    const int drop = 23 - f.fraction;
    const vu a = (vu)x & 0x7fffffff;
    const vu normal = ((a + ((1u << (drop - 1)) - 1) + ((a >> drop) & 1)) >> drop) - ((uint32_t)(127 - f.bias) << f.fraction);
    /* Below the smallest normal 2^(1-bias): added to 2^(23+1-bias-fraction), whose ulp is that of the subnormals, the sum rounds by itself. */
    const vu anchor = (vu)viset((127 + 24 - f.bias - f.fraction) << 23);
    const vu subnormal = (vu)((vf)a + (vf)anchor) - anchor;
    vu r = (vu)visel((vi)(a < ((uint32_t)(128 - f.bias) << 23)), (vi)subnormal, (vi)normal);
    const uint32_t nan = f.fnuz ? 0x80 : 0x7f;
    r = (vu)visel((vi)(r > f.most), viset((int32_t)(saturate ? f.most : f.inf ? 0x7c : nan)), (vi)r);
    vu sign = ((vu)x >> 24) & 0x80;
    if (f.fnuz) sign = (vu)visel((vi)(r == 0), viset(0), (vi)sign);
    r = (vu)visel((vi)(a > 0x7f800000), viset((int32_t)nan), (vi)(r | sign));
#if defined(__AVX512F__)
    return (vb)_mm512_cvtepi32_epi8((__m512i)r);
#elif defined(__AVX2__)
    const __m256i by_half = _mm256_shuffle_epi8((__m256i)r, _mm256_set1_epi32(0x0c080400));
    const __m256i packed = _mm256_permutevar8x32_epi32(by_half, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
    const int64_t low = _mm_cvtsi128_si64(_mm256_castsi256_si128(packed));
    vb bytes;
    memcpy(&bytes, &low, sizeof bytes);
    return bytes;
#else
    return __builtin_convertvector(r, vb);
#endif
}

#endif
