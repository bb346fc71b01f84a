/* SPDX-License-Identifier: Apache-2.0 */
/* Counting by all threads of a block, of which one runs at a time. */
#ifndef TRINE_EMULATOR_COUNT_H
#define TRINE_EMULATOR_COUNT_H

#include <target.h>

/* *at += x, of shared memory, and what was there before; threads come in any order. */
DEVICE uint32_t add_shared(uint32_t *at, uint32_t x) {
    *at += x;
    return *at - x;
}

/* How many bits are set. */
DEVICE uint32_t ones_of(uint32_t x) { return (uint32_t)__builtin_popcount(x); }

#endif
