/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA2. It takes subnormal halves for zero (rocm.docs.amd.com, MIOpen, "MI200 MFMA behavior"),
 * which no bound allows: they go through float. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "tile/bf16_1k.h"

template <> struct unit<f16> {
    using sum = float;
    using sums = f32x4;
    template <class Sums> static DEVICE void multiply(Sums &s, chunk a, chunk b) {
        /* a row that stays would stay as floats too */
        const f16x8 x = __builtin_bit_cast(f16x8, a), y = __builtin_bit_cast(f16x8, afresh(b));
#pragma unroll
        for (int k = 0; k < 8; k++) s = matrix_multiply(f32{}, (float)x[k], (float)y[k], s);
    }
};

DEVICE i32x4 matrix_multiply(i8, int a, int b, i32x4 s) {
    return __builtin_amdgcn_mfma_i32_16x16x16i8(a, b, s, 0, 0, 0);
}
template <> struct unit<i8> : unit_of_parts<i8, int, int32_t> {};

#define UNIT_FLOAT8(ENTRIES)
#define UNIT_WIDENED(WIDEN, PRODUCTS) WIDEN(e4m3) WIDEN(e5m2) PRODUCTS(f16, bf16, f32)

#endif
