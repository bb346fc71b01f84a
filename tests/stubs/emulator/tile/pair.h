/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of 16-bit elements in a register, and votes of a warp, on the host. */
#ifndef TRINE_EMULATOR_TILE_PAIR_H
#define TRINE_EMULATOR_TILE_PAIR_H

#include "backends/simt/simt.h"

template <class T> DEVICE uint32_t pair_of(float low, float high) { return (uint32_t)T::put(low) | (uint32_t)T::put(high) << 16; }

DEVICE float maximum_of(float a, float b) { return fmaxf(a, b); }

DEVICE void sync_warp() { emulator_wait(WAIT_WARP); }
DEVICE bool any_of_warp(bool yes) {
    const int first = emulator.thread / WARP * WARP;
    bool any = false;
    emulator.slot[emulator.thread] = yes;
    emulator_wait(WAIT_WARP);
    for (int i = first; i < first + WARP; i++) any |= emulator.slot[i] != 0;
    emulator_wait(WAIT_WARP);
    return any;
}

#endif
