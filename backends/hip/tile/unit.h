/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit: unit<T>::multiply() adds the product of 16 lanes of a and 16 of b, a chunk of each lane, to 16 x 16 sums in a wave. The folders beside this
 * file choose the instructions of each architecture; those that all have are here. Layouts: AMD matrix instruction calculator, cdna2 and cdna3. */
#ifndef TRINE_HIP_TILE_UNIT_H
#define TRINE_HIP_TILE_UNIT_H

#include "chunk.h"

typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef int32_t i32x4 __attribute__((ext_vector_type(4)));
typedef double f64x4 __attribute__((ext_vector_type(4)));
typedef double f64x2 __attribute__((ext_vector_type(2)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
typedef short i16x4 __attribute__((ext_vector_type(4)));
typedef short i16x8 __attribute__((ext_vector_type(8)));
typedef long i64x2 __attribute__((ext_vector_type(2)));

/* Four sums of a lane i are in column i % 16, in rows 4 (i / 16) + r; those in float64 in rows 4 r + i / 16. */
template <class Sums> DEVICE int sum_row(int lane, int r) { return sizeof(Sums) == sizeof(f64x4) ? 4 * r + lane / 16 : lane / 16 * 4 + r; }

/* Halves of 8 elements. */
template <class Eight> DEVICE auto low_half(Eight x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3); }
template <class Eight> DEVICE auto high_half(Eight x) { return __builtin_shufflevector(x, x, 4, 5, 6, 7); }

template <class T> struct unit;

template <> struct unit<f32> {
    using sum = float;
    using sums = f32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        const f32x4 x = __builtin_bit_cast(f32x4, a), y = __builtin_bit_cast(f32x4, b);
#pragma unroll
        for (int k = 0; k < 4; k++) s = __builtin_amdgcn_mfma_f32_16x16x4f32(x[k], y[k], s, 0, 0, 0);
    }
};

template <> struct unit<f64> {
    using sum = double;
    using sums = f64x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        const f64x2 x = __builtin_bit_cast(f64x2, a), y = __builtin_bit_cast(f64x2, b);
#pragma unroll
        for (int k = 0; k < 2; k++) s = __builtin_amdgcn_mfma_f64_16x16x4f64(x[k], y[k], s, 0, 0, 0);
    }
};

#endif
