/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of pairs of f16 and of bf16. */
#ifndef TRINE_TILE_HALF_H
#define TRINE_TILE_HALF_H

#include "backends/simt/core/simt.h"

DEVICE uint32_t f16_difference(uint32_t x, uint32_t y) {
    uint32_t r;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    return r;
}
DEVICE uint32_t f16_product(uint32_t x, uint32_t y) {
    uint32_t r;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    return r;
}
/* sm_80 has but the fused one: y times -1, and a sum with -0, which change nothing. */
DEVICE uint32_t bf16_fused(uint32_t x, uint32_t y, uint32_t z) {
    uint32_t r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
    return r;
}

DEVICE uint32_t pair_difference(f16, uint32_t x, uint32_t y) { return f16_difference(x, y); }
DEVICE uint32_t pair_difference(bf16, uint32_t x, uint32_t y) { return bf16_fused(y, 0xbf80bf80u, x); }
DEVICE uint32_t pair_product(f16, uint32_t x, uint32_t y) { return f16_product(x, y); }
DEVICE uint32_t pair_product(bf16, uint32_t x, uint32_t y) { return bf16_fused(x, y, 0x80008000u); }

#endif
