/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of pairs of f16 and of bf16 on the host: of f32, which rounds once more. */
#ifndef TRINE_EMULATOR_TILE_HALF_H
#define TRINE_EMULATOR_TILE_HALF_H

#include "backends/simt/core/simt.h"

DEVICE uint32_t f16_difference(uint32_t x, uint32_t y) {
    return f16_pair(float_from_f16((uint16_t)x) - float_from_f16((uint16_t)y),
                    float_from_f16((uint16_t)(x >> 16)) - float_from_f16((uint16_t)(y >> 16)));
}
DEVICE uint32_t f16_product(uint32_t x, uint32_t y) {
    return f16_pair(float_from_f16((uint16_t)x) * float_from_f16((uint16_t)y),
                    float_from_f16((uint16_t)(x >> 16)) * float_from_f16((uint16_t)(y >> 16)));
}

DEVICE uint32_t pair_difference(f16, uint32_t x, uint32_t y) { return f16_difference(x, y); }
DEVICE uint32_t pair_product(f16, uint32_t x, uint32_t y) { return f16_product(x, y); }
DEVICE uint32_t pair_difference(bf16, uint32_t x, uint32_t y) {
    return bf16_pair(bf16::get((uint16_t)x) - bf16::get((uint16_t)y),
                     bf16::get((uint16_t)(x >> 16)) - bf16::get((uint16_t)(y >> 16)));
}
DEVICE uint32_t pair_product(bf16, uint32_t x, uint32_t y) {
    return bf16_pair(bf16::get((uint16_t)x) * bf16::get((uint16_t)y),
                     bf16::get((uint16_t)(x >> 16)) * bf16::get((uint16_t)(y >> 16)));
}

#endif
