/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of 16 bytes to an address of shared memory, and loads from one. */
#ifndef TRINE_TILE_PIECES_H
#define TRINE_TILE_PIECES_H

#include "backends/simt/core/simt.h"

/* `bytes` of 16, and 0 after them; as copy_bytes(). */
DEVICE void copy_piece(uint32_t to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

DEVICE float shared_load_float(uint32_t address) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory");
    return x;
}

#endif
