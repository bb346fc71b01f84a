/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters of blocks on the host: a block is one of its own, and sends nothing. */
#ifndef TRINE_EMULATOR_TILE_CLUSTER_H
#define TRINE_EMULATOR_TILE_CLUSTER_H

#include "backends/simt/core/simt.h"

constexpr bool HAS_CLUSTERS = false;

DEVICE uint32_t shared_address(const void *) { return 0; }
DEVICE int cluster_rank() { return 0; }
DEVICE int64_t cluster_index() { return block_index(); }
DEVICE void cluster_sync() {}
DEVICE void cluster_arrive() { __builtin_trap(); }
DEVICE void cluster_wait() { __builtin_trap(); }
DEVICE void barrier_init(uint32_t, int) {}
DEVICE void barriers_made() {}
DEVICE void barrier_expect(uint32_t, int) { __builtin_trap(); }
DEVICE void barrier_come(uint32_t) {}
DEVICE void barrier_wait(uint32_t, uint32_t) { __builtin_trap(); }
DEVICE uint32_t cluster_address(uint32_t, int) { __builtin_trap(); }
DEVICE void cluster_send(uint32_t, uint32_t, uint32_t, uint32_t) { __builtin_trap(); }
DEVICE void cluster_send_piece(uint32_t, uint32_t, const packed<uint32_t, 4> &) { __builtin_trap(); }

#endif
