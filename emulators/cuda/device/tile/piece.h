/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of 16 bytes on the host, where launches follow each other. */
#ifndef TRINE_EMULATOR_TILE_PIECE_H
#define TRINE_EMULATOR_TILE_PIECE_H

#include <tile/mma.h>

#define ENTRY_AHEAD ENTRY_HELD
DEVICE void launch_next() {}
DEVICE void launch_wait() {}

DEVICE void copy_once(void *to, const void *from, bool yes) { copy_bytes<16>(to, from, yes ? 16 : 0); }
DEVICE void fetch_bytes(const void *from, int bytes) {
    if (((uintptr_t)from | (uintptr_t)bytes) % 16 != 0) __builtin_trap();
}

#endif
