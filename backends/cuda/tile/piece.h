/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of 16 bytes to shared memory, and what is prefetched into L2 before (PTX ISA 9.0). */
#ifndef TRINE_TILE_PIECE_H
#define TRINE_TILE_PIECE_H

#include "mma.h"

/* copy_bytes() of 16 bytes that are read once, or zeros: L2 asks for the 128 round them. */
DEVICE void copy_once(void *to, const void *from, bool yes) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(yes ? 16 : 0)
                 : "memory");
}

/* Prefetches `bytes` from an address on into L2, both multiples of 16: a hint, also for what the previous launch still
 * writes, since there is one L2 for all SMs. */
DEVICE void fetch_bytes(const void *from, int bytes) {
    if constexpr (CUDA_ARCH >= 900) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
}

#endif
