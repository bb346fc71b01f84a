/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA3. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "backends/simt/float8.h"
#include "tile/bf16_1k.h"

DEVICE f32x4 matrix_multiply(f16, f16x4 a, f16x4 b, f32x4 s) { return __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, s, 0, 0, 0); }
DEVICE f32x16 matrix_multiply(f16, f16x4 a, f16x4 b, f32x16 s) { return __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, s, 0, 0, 0); }
DEVICE f32x4 matrix_multiply(e4m3, long a, long b, f32x4 s) { return __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a, b, s, 0, 0, 0); }
DEVICE i32x4 matrix_multiply(i8, long a, long b, i32x4 s) { return __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, s, 0, 0, 0); }

template <> struct unit<f16> : unit_of_parts<f16, f16x4> {};
template <> struct unit<e4m3> : unit_of_parts<e4m3, long> {};
template <> struct unit<i8> : unit_of_parts<i8, long, int32_t> {};

/* The unit's e4m3 is that of FNUZ, in which all codes mean half as much, but 0x80, which is NaN: what stands for -0 becomes +0, and NaN, 0x7f and 0xff, becomes
 * that. (e5m2 has infinities, of which FNUZ has none: it is widened.) */
template <> constexpr float UNIT_FACTOR<e4m3> = 2;
template <> DEVICE chunk chunk_of_unit<e4m3>(chunk c) {
    constexpr uint32_t ONE = 0x01010101u, BODY = 0x7f * ONE, SIGN = 0x80 * ONE;
    const chunk body = c & BODY, nan = (body + ONE) & SIGN, bodies = nan - (nan >> 7);
    return (c & (body + BODY | BODY) & ~bodies) | nan;
}

/* The pairs of float8 types that the unit has. */
#define UNIT_FLOAT8(ENTRIES) ENTRIES(e4m3, e4m3)

#endif
