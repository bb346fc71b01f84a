/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of 16-bit elements in a register, and votes of a warp (PTX ISA 9.0). */
#ifndef TRINE_TILE_PAIR_H
#define TRINE_TILE_PAIR_H

#include "backends/simt/simt.h"

/* Two floats as elements, the first one low. */
template <class T> DEVICE uint32_t pair_of(float low, float high);
template <> DEVICE uint32_t pair_of<bf16>(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
template <> DEVICE uint32_t pair_of<f16>(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* The larger, or that which is no NaN. */
DEVICE float maximum_of(float a, float b) { return fmaxf(a, b); }

DEVICE void sync_warp() { __syncwarp(); }
/* Is it so in any thread of the warp? All of its threads ask together. */
DEVICE bool any_of_warp(bool yes) { return __any_sync(0xffffffffu, yes); }

#endif
