/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix unit of CDNA3. */
#ifndef TRINE_HIP_TILE_MATRIX_H
#define TRINE_HIP_TILE_MATRIX_H

#include "backends/simt/core/float8.h"
#include "tile/bf16_1k.h"

DEVICE f32x4 matrix_multiply(f16, f16x4 a, f16x4 b, f32x4 s) {
    return __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, s, 0, 0, 0);
}
DEVICE f32x16 matrix_multiply(f16, f16x4 a, f16x4 b, f32x16 s) {
    return __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, s, 0, 0, 0);
}
DEVICE f32x4 matrix_multiply(by<e4m3, e4m3>, long a, long b, f32x4 s) {
    return __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a, b, s, 0, 0, 0);
}
DEVICE f32x4 matrix_multiply(by<e4m3, e5m2>, long a, long b, f32x4 s) {
    return __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(a, b, s, 0, 0, 0);
}
DEVICE f32x4 matrix_multiply(by<e5m2, e4m3>, long a, long b, f32x4 s) {
    return __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(a, b, s, 0, 0, 0);
}
DEVICE i32x4 matrix_multiply(i8, long a, long b, i32x4 s) {
    return __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, s, 0, 0, 0);
}

template <> struct unit<f16> : unit_of_parts<f16, f16x4> {};
template <> struct unit<e4m3, e4m3> : unit_of_parts<by<e4m3, e4m3>, long> {};
template <> struct unit<e4m3, e5m2> : unit_of_parts<by<e4m3, e5m2>, long> {};
template <> struct unit<e5m2, e4m3> : unit_of_parts<by<e5m2, e4m3>, long> {};
template <> struct unit<i8> : unit_of_parts<i8, long, int32_t> {};

/* The unit's float8 is that of FNUZ, in which all codes mean half as much, but 0x80, which is NaN: what stands for -0
 * becomes +0, and the codes whose bodies are LEAST or more become that. Those are NaN, and Inf in e5m2, of which FNUZ
 * has none. (LLVM, if it saw what `body` is, would take instructions more.) */
template <uint32_t LEAST> DEVICE chunk chunk_of_fnuz(chunk c) {
    constexpr uint32_t ONE = 0x01010101u, BODY = 0x7f * ONE, SIGN = 0x80 * ONE;
    const chunk body = afresh(c & BODY), none = (body + (0x80 - LEAST) * ONE) & SIGN, bodies = none - (none >> 7);
    return ((c & (body + BODY) | body) & ~bodies) | none;
}
template <> constexpr float UNIT_FACTOR<e4m3> = 2;
template <> DEVICE chunk chunk_of_unit<e4m3>(chunk c) { return chunk_of_fnuz<0x7f>(c); }
template <> constexpr float UNIT_FACTOR<e5m2> = 2;
template <> DEVICE chunk chunk_of_unit<e5m2>(chunk c) { return chunk_of_fnuz<0x7c>(c); }
template <> constexpr bool UNIT_LACKS_INF<e5m2> = true;

#define UNIT_FLOAT8(ENTRIES) ENTRIES(e4m3, e4m3) ENTRIES(e4m3, e5m2) ENTRIES(e5m2, e4m3)
#define UNIT_WIDENED(WIDEN, PRODUCTS)

#endif
