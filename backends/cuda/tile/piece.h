/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of 16 bytes from memory to registers, and what is asked of the second-level cache before (PTX ISA 9.0). */
#ifndef TRINE_TILE_PIECE_H
#define TRINE_TILE_PIECE_H

#include "mma.h"

/* load_once_if() of what is read again: the first-level cache keeps it. */
DEVICE packed<uint32_t, 4> load_often_if(bool yes, const void *from) {
    packed<uint32_t, 4> x;
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\nmov.b32 %3, 0;\n"
                 "@p ld.global.v4.b32 {%0, %1, %2, %3}, [%5];\n}"
                 : "=&r"(x.v[0]), "=&r"(x.v[1]), "=&r"(x.v[2]), "=&r"(x.v[3])
                 : "r"((int)yes), "l"(from));
    return x;
}

/* Asks the second-level cache for `bytes` from an address on, both multiples of 16: a hint, also for what the launch ahead still writes, since there is one such
 * cache for all. */
DEVICE void fetch_bytes(const void *from, int bytes) {
    if constexpr (CUDA_ARCH >= 900) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
}

#endif
