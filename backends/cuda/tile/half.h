/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of pairs of f16. */
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

#endif
