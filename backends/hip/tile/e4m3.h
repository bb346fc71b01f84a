/* SPDX-License-Identifier: Apache-2.0 */
/* e4m3 on CDNA3 and CDNA4. */
#ifndef TRINE_HIP_TILE_E4M3_H
#define TRINE_HIP_TILE_E4M3_H

#include "backends/simt/float8.h"
#include "tile/unit.h"

template <> struct unit<e4m3> {
    using sum = float;
    using sums = f32x4;
    static DEVICE void multiply(sums &s, chunk a, chunk b) {
        const i64x2 x = __builtin_bit_cast(i64x2, a), y = __builtin_bit_cast(i64x2, b);
#pragma unroll
        for (int k = 0; k < 2; k++) s = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x[k], y[k], s, 0, 0, 0);
    }
};

/* The types of float8 that the unit has. */
#define UNIT_FLOAT8(ENTRIES) ENTRIES(e4m3)

#endif
