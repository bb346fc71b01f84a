/* SPDX-License-Identifier: Apache-2.0 */
/* What all threads of a warp, or of a block, do together, on the host. */
#ifndef TRINE_EMULATOR_TILE_VOTE_H
#define TRINE_EMULATOR_TILE_VOTE_H

#include "backends/simt/core/simt.h"

DEVICE void sync_warp() { emulator_wait(WAIT_WARP); }
DEVICE bool sync_block_any(bool yes) {
    bool any = false;
    emulator.slot[emulator.thread] = yes;
    emulator_wait(WAIT_BLOCK);
    for (int i = 0; i < emulator.threads; i++) any |= emulator.slot[i] == 1;
    emulator_wait(WAIT_BLOCK);
    return any;
}

#endif
