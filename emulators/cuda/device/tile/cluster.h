/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters of blocks on the host: their barriers, and what blocks send to each other's launch memory. A block that is a
 * cluster of its own sends nothing. */
#ifndef TRINE_EMULATOR_TILE_CLUSTER_H
#define TRINE_EMULATOR_TILE_CLUSTER_H

#include "backends/simt/core/simt.h"

constexpr bool HAS_CLUSTERS = false;

/* From where the block's launch memory begins; of what is not in it, anything. */
DEVICE uint32_t shared_address(const void *p) { return (uint32_t)((const char *)p - launch_memory()); }
DEVICE int cluster_rank() { return emulator.rank; }
DEVICE int64_t cluster_index() { return block_index() / emulator.cluster; }
DEVICE void cluster_sync() {
    if (emulator.cluster > 1) emulator_wait(WAIT_CLUSTER);
}
DEVICE void cluster_arrive() { __builtin_trap(); }
DEVICE void cluster_wait() { __builtin_trap(); }

/* A barrier in launch memory: arrivals of each phase and those still to come, bytes to come, and the phase's parity. */
struct emulated_barrier {
    uint8_t arrivals, left;
    uint16_t parity;
    int32_t bytes;

    void change() {
        emulator.changes++;
        if (left != 0 || bytes != 0) return;
        parity ^= 1;
        left = arrivals;
    }
};
DEVICE char *emulated_address(uint32_t address, uint32_t size) {
    if (address % size != 0 || address >= (uint32_t)emulator.cluster * EMULATOR_MEMORY) __builtin_trap();
    return &emulator.memory[0][0] + address;
}
DEVICE emulated_barrier &emulated_barrier_at(uint32_t address) {
    return *(emulated_barrier *)emulated_address(address, sizeof(emulated_barrier));
}
DEVICE uint32_t cluster_address(uint32_t address, int rank) {
    if (address >= EMULATOR_MEMORY || rank < 0 || rank >= emulator.cluster) __builtin_trap();
    return (uint32_t)rank * EMULATOR_MEMORY + address;
}
DEVICE uint32_t emulated_own(uint32_t address) { return cluster_address(address, emulator.rank); }

DEVICE void barrier_init(uint32_t barrier, int arrivals) {
    if (emulator.cluster > 1)
        emulated_barrier_at(emulated_own(barrier)) = { (uint8_t)arrivals, (uint8_t)arrivals, 0, 0 };
}
DEVICE void barriers_made() {}
DEVICE void barrier_expect(uint32_t barrier, int bytes) {
    emulated_barrier &b = emulated_barrier_at(emulated_own(barrier));
    if (emulator.cluster == 1 || b.left == 0) __builtin_trap();
    b.left--;
    b.bytes += bytes;
    b.change();
}
DEVICE void barrier_come(uint32_t barrier) {
    if (emulator.cluster > 1) barrier_expect(barrier, 0);
}
DEVICE void barrier_wait(uint32_t barrier, uint32_t parity) {
    if (emulator.cluster == 1) __builtin_trap();
    while (emulated_barrier_at(emulated_own(barrier)).parity == parity) emulator_wait(WAIT_CHANGE);
}
template <class Word> DEVICE void emulated_send(uint32_t there, uint32_t barrier, const Word &x) {
    if (there / EMULATOR_MEMORY != barrier / EMULATOR_MEMORY) __builtin_trap();
    memcpy(emulated_address(there, sizeof x), &x, sizeof x);
    emulated_barrier &b = emulated_barrier_at(barrier);
    b.bytes -= (int32_t)sizeof x;
    b.change();
}
DEVICE void cluster_send(uint32_t there, uint32_t barrier, uint32_t x, uint32_t y) {
    emulated_send(there, barrier, packed<uint32_t, 2>{ { x, y } });
}
DEVICE void cluster_send_piece(uint32_t there, uint32_t barrier, const packed<uint32_t, 4> &x) {
    emulated_send(there, barrier, x);
}

#endif
