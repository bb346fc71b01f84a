/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA3. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "tile/bf16_1k.h"
#include "tile/e4m3.h"

DEVICE f32x4 matrix_multiply(f16x4 a, f16x4 b, f32x4 s) { return __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, s, 0, 0, 0); }
DEVICE f32x16 matrix_multiply(f16x4 a, f16x4 b, f32x16 s) { return __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, s, 0, 0, 0); }

template <> struct unit<f16> {
    using sum = float;
    using sums = f32x4;
    template <class Sums> static DEVICE void multiply(Sums &s, chunk a, chunk b) {
        const f16x8 x = __builtin_bit_cast(f16x8, a), y = __builtin_bit_cast(f16x8, b);
        s = matrix_multiply(low_half(x), low_half(y), s);
        s = matrix_multiply(high_half(x), high_half(y), s);
    }
};

template <> struct unit<i8> {
    using sum = int32_t;
    using sums = i32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        const i64x2 x = __builtin_bit_cast(i64x2, a), y = __builtin_bit_cast(i64x2, b);
#pragma unroll
        for (int k = 0; k < 2; k++) s = __builtin_amdgcn_mfma_i32_16x16x32_i8(x[k], y[k], s, 0, 0, 0);
    }
};

/* The unit's e4m3 is that of FNUZ, in which all codes mean half as much, but 0x80, which is NaN: what stands for -0 becomes +0, and NaN, 0x7f and 0xff, becomes
 * that. (e5m2 has infinities, of which FNUZ has none: it is widened.) */
template <> constexpr float UNIT_FACTOR<e4m3> = 4;
template <> DEVICE chunk chunk_of_unit<e4m3>(chunk c) {
    constexpr uint32_t ONE = 0x01010101u, BODY = 0x7f * ONE, SIGN = 0x80 * ONE;
    const chunk body = c & BODY, nan = (body + ONE) & SIGN, bodies = nan - (nan >> 7);
    return (c & (body + BODY | BODY) & ~bodies) | nan;
}

#endif
