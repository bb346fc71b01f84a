/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of two vectors at once, for loops to which the order within the two does not matter: for bf16 the even and the odd elements,
 * which takes half the instructions of widening and narrowing them in order. */
#ifndef TRINE_VEC_PAIR_H
#define TRINE_VEC_PAIR_H

#include "vec.h"

typedef vu vu_any __attribute__((aligned(1), may_alias));

/* x rounded to bf16, in the high half of each element; the low half is rubbish. */
INLINE vu vf_round_bf16(vf x) {
    const vu bits = (vu)x;
    const vu rounded = bits + 0x7fff + ((bits >> 16) & 1);
    return (vu)visel(x != x, (vi)(bits | 0x400000), (vi)rounded);
}

/* Elements i .. i+2*VL-1. */
INLINE void vload2(vf out[2], const void *data, trine_dtype dtype, int64_t i) {
    if (dtype == TRINE_BF16) {
        const vu both = *(const vu_any *)((const uint16_t *)data + i);
        out[0] = (vf)(both << 16);
        out[1] = (vf)(both & 0xffff0000u);
    } else {
        out[0] = vload(data, dtype, i);
        out[1] = vload(data, dtype, i + VL);
    }
}

INLINE void vstore2(void *data, trine_dtype dtype, int64_t i, const vf in[2]) {
    if (dtype == TRINE_BF16) {
        *(vu_any *)((uint16_t *)data + i) = (vf_round_bf16(in[0]) >> 16) | (vf_round_bf16(in[1]) & 0xffff0000u);
    } else {
        vstore(data, dtype, i, in[0]);
        vstore(data, dtype, i + VL, in[1]);
    }
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

/* Sizes without conversion: *high, all zeros at first, collects the largest |x| of the elements i .. i+2*VL-1, as the high halves of their bits. */
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
    for (int j = dtype == TRINE_F32; j < VB / 2; j += 1 + (dtype == TRINE_F32))
        if (part[j] > most) most = part[j];
    if (dtype == TRINE_F16) return sload(&most, TRINE_F16, 0);
    const uint32_t bits = (uint32_t)most << 16 | (dtype == TRINE_F32 ? 0xffff : 0);
    float bound;
    memcpy(&bound, &bits, sizeof bound);
    return bound;
}

#endif
