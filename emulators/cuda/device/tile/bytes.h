/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of two words on the host. */
#ifndef TRINE_EMULATOR_TILE_BYTES_H
#define TRINE_EMULATOR_TILE_BYTES_H

#include "backends/simt/core/simt.h"

DEVICE uint32_t bytes_of(uint32_t a, uint32_t b, uint32_t which) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t number = which >> 4 * i & 15;
        if (number > 7) __builtin_trap(); /* would be signs */
        word |= ((number < 4 ? a : b) >> number % 4 * 8 & 255) << 8 * i;
    }
    return word;
}

#endif
