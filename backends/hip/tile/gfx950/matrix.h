/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA4, whose instructions take a whole chunk. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "tile/unit.h"

typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));

template <> struct unit<f16> {
    using sum = float;
    using sums = f32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        s = __builtin_amdgcn_mfma_f32_16x16x32_f16(__builtin_bit_cast(f16x8, a), __builtin_bit_cast(f16x8, b), s, 0, 0, 0);
    }
};

template <> struct unit<bf16> {
    using sum = float;
    using sums = f32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        s = __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(bf16x8, a), __builtin_bit_cast(bf16x8, b), s, 0, 0, 0);
    }
};

template <> struct unit<i8> {
    using sum = int32_t;
    using sums = i32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        s = __builtin_amdgcn_mfma_i32_16x16x64_i8(__builtin_bit_cast(i32x4, a), __builtin_bit_cast(i32x4, b), s, 0, 0, 0);
    }
};

/* Two floats that are no NaN, rounded to T. */
template <class T> DEVICE uint32_t pair_of_numbers(float low, float high) { return T::pair(low, high); }

#endif
