/* SPDX-License-Identifier: Apache-2.0 */
/* What all threads of a warp, or of a block, do together (PTX ISA 9.0). */
#ifndef TRINE_TILE_VOTE_H
#define TRINE_TILE_VOTE_H

#include "backends/simt/core/simt.h"

DEVICE void sync_warp() { __syncwarp(); }
/* All threads of the block meet; in any of them? */
DEVICE bool sync_block_any(bool yes) { return __syncthreads_or(yes); }

#endif
