/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA2. It takes subnormal halves for zero (rocm.docs.amd.com, MIOpen, "MI200 MFMA behavior"), which no bound allows: they go through float. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "tile/bf16_1k.h"

template <> struct unit<f16> {
    using sum = float;
    using sums = f32x4;
    template <class Sums> static DEVICE void multiply(Sums &s, chunk a, chunk b) {
        const f16x8 x = __builtin_bit_cast(f16x8, a), y = __builtin_bit_cast(f16x8, afresh(b)); /* a row that stays would stay as floats too */
#pragma unroll
        for (int k = 0; k < 8; k++) s = matrix_multiply((float)x[k], (float)y[k], s);
    }
};

template <> struct unit<i8> {
    using sum = int32_t;
    using sums = i32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
#pragma unroll
        for (int k = 0; k < 4; k++) s = __builtin_amdgcn_mfma_i32_16x16x16i8((int)a[k], (int)b[k], s, 0, 0, 0);
    }
};

#define UNIT_FLOAT8(ENTRIES)

#endif
