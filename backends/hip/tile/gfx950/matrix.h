/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA4, whose instructions take a whole chunk. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "tile/e4m3.h"

typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));

DEVICE f32x4 matrix_multiply(f16x8 a, f16x8 b, f32x4 s) { return __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, s, 0, 0, 0); }
DEVICE f32x16 matrix_multiply(f16x8 a, f16x8 b, f32x16 s) { return __builtin_amdgcn_mfma_f32_32x32x16_f16(a, b, s, 0, 0, 0); }
DEVICE f32x4 matrix_multiply(bf16x8 a, bf16x8 b, f32x4 s) { return __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, s, 0, 0, 0); }
DEVICE f32x16 matrix_multiply(bf16x8 a, bf16x8 b, f32x16 s) { return __builtin_amdgcn_mfma_f32_32x32x16_bf16(a, b, s, 0, 0, 0); }

/* LDS serves 16 lanes of 16 bytes at a time, which are 0 to 3, 12 to 15 and 20 to 27, or the others of 32 (tests/cdna/lds_check.c). */
template <> DEVICE int chunk_place_by<32>(unsigned lane, unsigned c) { return (lane ^ lane / 16 % 2) * CHUNKS + (c ^ lane / 4 % CHUNKS); }

/* Of elements of 16 bits. */
template <class Eight> struct unit_of_halves {
    using sum = float;
    using sums = f32x4;
    template <class Sums> static DEVICE void multiply(Sums &s, chunk a, chunk b) {
        s = matrix_multiply(__builtin_bit_cast(Eight, a), __builtin_bit_cast(Eight, b), s);
    }
};
template <> struct unit<f16> : unit_of_halves<f16x8> {};
template <> struct unit<bf16> : unit_of_halves<bf16x8> {};

template <> struct unit<i8> {
    using sum = int32_t;
    using sums = i32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        s = __builtin_amdgcn_mfma_i32_16x16x64_i8(__builtin_bit_cast(i32x4, a), __builtin_bit_cast(i32x4, b), s, 0, 0, 0);
    }
};

#endif
