/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of two vectors at once, for loops to which the order within the two does not matter: for bf16 the
 * even and the odd elements, which takes half the instructions of widening and narrowing them in order. */
#ifndef TRINE_VEC_PAIR_H
#define TRINE_VEC_PAIR_H

#include "order.h"
#include "vec.h"

typedef vu vu_any __attribute__((aligned(1), may_alias));

/* x rounded to bf16, in the high half of each element; the low half is rubbish. x is a result of arithmetic: its NaNs
 * are quiet, and stay NaN unless rounding carries out of a payload of ones. */
INLINE vu vf_round_bf16(vf x) {
    vu bits = (vu)x;
#if defined(__AVX512F__)
    bits = (vu)_mm512_min_epu32(_mm512_min_epi32((__m512i)bits, _mm512_set1_epi32(0x7fff0000)),
                                _mm512_set1_epi32((int)0xffff0000));
#elif defined(__AVX2__)
    bits = (vu)_mm256_min_epu32(_mm256_min_epi32((__m256i)bits, _mm256_set1_epi32(0x7fff0000)),
                                _mm256_set1_epi32((int)0xffff0000));
#else
    bits &= ~((vu)(x != x) & 0xffff);
#endif
    return bits + 0x7fff + ((bits >> 16) & 1);
}

/* The even and the odd elements of two vectors, and back. */
INLINE void vsplit2(vf v[2]) {
    const vf a = v[0], b = v[1];
#if VB == 64
    v[0] = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    v[1] = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif VB == 32
    v[0] = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    v[1] = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    v[0] = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    v[1] = __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}
INLINE void vmerge2(vf v[2]) {
    const vf a = v[0], b = v[1];
#if VB == 64
    v[0] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    v[1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif VB == 32
    v[0] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    v[1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    v[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    v[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

/* Elements i .. i+2*VL-1 in the order that suits `order`: bf16's even and odd ones, other types' as they come. */
INLINE void vload2_as(vf out[2], const void *data, trine_dtype dtype, int64_t i, trine_dtype order) {
    if (dtype == TRINE_BF16 && order == TRINE_BF16) {
        const vu both = *(const vu_any *)((const uint16_t *)data + i);
        out[!LITTLE] = (vf)(both << 16);
        out[LITTLE] = (vf)(both & 0xffff0000u);
        return;
    }
    out[0] = vload(data, dtype, i);
    out[1] = vload(data, dtype, i + VL);
    if (order == TRINE_BF16) vsplit2(out);
}
INLINE void vload2(vf out[2], const void *data, trine_dtype dtype, int64_t i) { vload2_as(out, data, dtype, i, dtype); }

INLINE vu vpack_bf16(const vf in[2]) {
    return (vf_round_bf16(in[!LITTLE]) >> 16) | (vf_round_bf16(in[LITTLE]) & 0xffff0000u);
}

INLINE void vstore2_as(void *data, trine_dtype dtype, int64_t i, const vf in[2], trine_dtype order) {
    vf v[2] = { in[0], in[1] };
    if (dtype == TRINE_BF16 && order == TRINE_BF16) {
        *(vu_any *)((uint16_t *)data + i) = vpack_bf16(v);
        return;
    }
    if (order == TRINE_BF16) vmerge2(v);
    vstore(data, dtype, i, v[0]);
    vstore(data, dtype, i + VL, v[1]);
}
INLINE void vstore2(void *data, trine_dtype dtype, int64_t i, const vf in[2]) { vstore2_as(data, dtype, i, in, dtype); }

/* The same past the caches, at a multiple of the stored bytes. */
INLINE void vstream2_as(void *data, trine_dtype dtype, int64_t i, const vf in[2], trine_dtype order) {
    vf v[2] = { in[0], in[1] };
    if (dtype == TRINE_BF16 && order == TRINE_BF16) {
        vstream((uint16_t *)data + i, TRINE_F32, 0, (vf)vpack_bf16(v));
        return;
    }
    if (order == TRINE_BF16) vmerge2(v);
    vstream(data, dtype, i, v[0]);
    vstream(data, dtype, i + VL, v[1]);
}

/* Which elements, counted from the first, are among the first m. */
INLINE void vfirst2(vi out[2], int m, trine_dtype order) {
    const vi i = viota();
    out[0] = (order == TRINE_BF16 ? i + i : i) < m;
    out[1] = (order == TRINE_BF16 ? i + i + 1 : i + VL) < m;
}

/* The larger of each two int16. */
INLINE vu vmax_i16(vu a, vu b) {
#if defined(__AVX512BW__)
    return (vu)_mm512_max_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (vu)_mm256_max_epi16((__m256i)a, (__m256i)b);
#else
    typedef int16_t v16 __attribute__((vector_size(VB)));
    const v16 x = (v16)a, y = (v16)b, larger = x > y;
    return (vu)((x & larger) | (y & ~larger));
#endif
}

/* 16-bit floats as int16 in the same order, and back; of NaN the positive ones come last and the negative ones
 * first. */
INLINE vu vorder_i16(vu x) {
    typedef int16_t v16 __attribute__((vector_size(VB)));
    return x ^ ((vu)((v16)x >> 15) & 0x7fff7fffu);
}

/* Sizes without conversion: *high, all zeros at first, collects the largest |x| of the elements i .. i+2*VL-1, as the
 * high halves of their bits. */
INLINE void vabs2(vu *high, const void *data, trine_dtype dtype, int64_t i) {
    for (int j = 0; j < (dtype == TRINE_F32 ? 2 : 1); j++) {
        const vu bits = *(const vu_any *)((const char *)data + i * (int64_t)vsize(dtype) + j * VB);
        *high = vmax_i16(*high, bits & 0x7fff7fffu);
    }
}

/* A bound of what vabs2 collected; NaN if there was one. */
INLINE float vabs2_bound(vu high, trine_dtype dtype) {
    uint16_t part[VB / 2], most = 0;
    memcpy(part, &high, sizeof part);
    for (int j = dtype == TRINE_F32 ? LITTLE : 0; j < VB / 2; j += 1 + (dtype == TRINE_F32))
        if (part[j] > most) most = part[j];
    if (dtype == TRINE_F16) return sload(&most, TRINE_F16, 0);
    const uint32_t bits = (uint32_t)most << 16 | (dtype == TRINE_F32 ? 0xffff : 0);
    float bound;
    memcpy(&bound, &bits, sizeof bound);
    return bound;
}

#endif
