/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA3. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "tile/unit.h"

template <> struct unit<f16> {
    using sum = float;
    using sums = f32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        const f16x8 x = __builtin_bit_cast(f16x8, a), y = __builtin_bit_cast(f16x8, b);
        s = __builtin_amdgcn_mfma_f32_16x16x16f16(low_half(x), low_half(y), s, 0, 0, 0);
        s = __builtin_amdgcn_mfma_f32_16x16x16f16(high_half(x), high_half(y), s, 0, 0, 0);
    }
};

template <> struct unit<bf16> {
    using sum = float;
    using sums = f32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        const i16x8 x = __builtin_bit_cast(i16x8, a), y = __builtin_bit_cast(i16x8, b);
        s = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(low_half(x), low_half(y), s, 0, 0, 0);
        s = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(high_half(x), high_half(y), s, 0, 0, 0);
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

/* Two floats that are no NaN, rounded to T. There is no instruction that rounds to bf16. */
template <class T> DEVICE uint32_t pair_of_numbers(float low, float high) { return T::pair(low, high); }
template <> DEVICE uint32_t pair_of_numbers<bf16>(float low, float high) {
    const uint32_t a = bits_of_float(low), b = bits_of_float(high);
    return __builtin_amdgcn_perm(b + 0x7fff + (b >> 16 & 1), a + 0x7fff + (a >> 16 & 1), 0x07060302);
}

#endif
