/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses under a condition on the host. */
#ifndef TRINE_EMULATOR_TILE_ACCESS_H
#define TRINE_EMULATOR_TILE_ACCESS_H

#include <tile/mma.h>

template <int SIZE> DEVICE void copy_if(bool yes, void *to, const void *from) {
    if (yes) copy_bytes<SIZE>(to, from, SIZE);
}
template <int WORDS> DEVICE void store_if(bool yes, void *to, const uint32_t (&x)[WORDS]) {
    if (!yes) return;
    if ((uintptr_t)to % sizeof x != 0) __builtin_trap();
    memcpy(to, x, sizeof x);
}

#endif
