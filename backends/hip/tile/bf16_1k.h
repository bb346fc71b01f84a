/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 on CDNA2 and CDNA3: instructions that take half a chunk, and none that rounds to it. */
#ifndef TRINE_HIP_TILE_BF16_1K_H
#define TRINE_HIP_TILE_BF16_1K_H

#include "tile/unit.h"

DEVICE f32x4 matrix_multiply(bf16, i16x4 a, i16x4 b, f32x4 s) {
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, s, 0, 0, 0);
}
DEVICE f32x16 matrix_multiply(bf16, i16x4 a, i16x4 b, f32x16 s) {
    return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, s, 0, 0, 0);
}

template <> struct unit<bf16> : unit_of_parts<bf16, i16x4> {};

/* To the nearest, of two the even one, in the high half; the compiler would take an instruction more for each. */
DEVICE uint32_t bf16_rounded(float x) {
    const uint32_t bits = bits_of_float(x);
    return x == x ? bits + (bits >> 16 & 1) + 0x7fff : NAN_BITS;
}
template <> DEVICE uint32_t rounded_pair<bf16>(float low, float high) {
    return __builtin_amdgcn_perm(bf16_rounded(high), bf16_rounded(low), 0x07060302);
}

/* To the nearest, of two the one farther from 0. */
template <> DEVICE uint32_t pair_of_weights<bf16>(float low, float high) {
    return __builtin_amdgcn_perm(bits_of_float(high) + 0x8000, bits_of_float(low) + 0x8000, 0x07060302);
}

#endif
