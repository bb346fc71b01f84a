/* SPDX-License-Identifier: Apache-2.0 */
/* Votes of a warp, and of a block (PTX ISA 9.0). */
#ifndef TRINE_TILE_VOTE_H
#define TRINE_TILE_VOTE_H

#include "backends/simt/core/simt.h"

DEVICE void sync_warp() { __syncwarp(); }
/* Is it so in any thread of the warp? All of its threads ask together. */
DEVICE bool any_of_warp(bool yes) { return __any_sync(0xffffffffu, yes); }
/* All threads of the block meet; in any of them? */
DEVICE bool sync_block_any(bool yes) { return __syncthreads_or(yes); }

#endif
