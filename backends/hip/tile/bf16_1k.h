/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 on CDNA2 and CDNA3: instructions that take half a chunk, and none that rounds to it. */
#ifndef TRINE_HIP_TILE_BF16_1K_H
#define TRINE_HIP_TILE_BF16_1K_H

#include "tile/unit.h"

DEVICE f32x4 matrix_multiply(bf16, i16x4 a, i16x4 b, f32x4 s) { return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, s, 0, 0, 0); }
DEVICE f32x16 matrix_multiply(bf16, i16x4 a, i16x4 b, f32x16 s) { return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a, b, s, 0, 0, 0); }

template <> struct unit<bf16> : unit_of_parts<bf16, i16x4> {};

/* To the nearest, of two the one farther from 0. */
template <> DEVICE uint32_t pair_of_weights<bf16>(float low, float high) {
    return __builtin_amdgcn_perm(bits_of_float(high) + 0x8000, bits_of_float(low) + 0x8000, 0x07060302);
}

#endif
