/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters of blocks and their barriers in shared memory, which sm_90 adds (PTX ISA 9.0); elsewhere a block is a
 * cluster of its own.
 *
 * Addresses of shared memory are 32-bit, as shared_address() gives them. */
#ifndef TRINE_TILE_CLUSTER_H
#define TRINE_TILE_CLUSTER_H

#include "backends/simt/core/simt.h"

constexpr bool HAS_CLUSTERS = CUDA_ARCH >= 900;

DEVICE uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

DEVICE int cluster_rank() {
    uint32_t rank = 0;
    if constexpr (HAS_CLUSTERS) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}

/* The number of the block's cluster. */
DEVICE int64_t cluster_index() {
    uint32_t index = blockIdx.x;
    if constexpr (HAS_CLUSTERS) asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(index));
    return index;
}

/* All threads of the cluster; what they wrote before, to any memory, they see after. */
DEVICE void cluster_sync() {
    if constexpr (HAS_CLUSTERS)
        asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* All threads of the cluster are here, or have been; unlike above, nothing waits for what was written. And its two
 * halves: a thread that has arrived may do other things before it waits. */
DEVICE void cluster_arrive() {
    if constexpr (HAS_CLUSTERS) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
DEVICE void cluster_wait() {
    if constexpr (HAS_CLUSTERS) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
DEVICE void cluster_meet() {
    cluster_arrive();
    cluster_wait();
}

DEVICE void barrier_init(uint32_t barrier, int arrivals) {
    if constexpr (HAS_CLUSTERS)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/* The barriers made are seen by the cluster and by copies. */
DEVICE void barriers_made() {
    if constexpr (HAS_CLUSTERS) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/* Arrives, and asks for so many bytes of copies besides. */
DEVICE void barrier_expect(uint32_t barrier, int bytes) {
    if constexpr (HAS_CLUSTERS)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/* Arrives at one of this block. */
DEVICE void barrier_come(uint32_t barrier) {
    if constexpr (HAS_CLUSTERS) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* Until the phase of this parity is over. */
DEVICE void barrier_wait(uint32_t barrier, uint32_t parity) {
    uint32_t over = 1;
    do
        if constexpr (HAS_CLUSTERS)
            asm volatile(
                "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                : "=r"(over)
                : "r"(barrier), "r"(parity)
                : "memory");
    while (!over);
}

/* The same place in the shared memory of another block of the cluster. */
DEVICE uint32_t cluster_address(uint32_t address, int rank) {
    uint32_t there = address;
    if constexpr (HAS_CLUSTERS)
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
/* 8 bytes, or 16, to such an address; they count for a barrier there.
 * Unlike where all meet, nothing waits for what was written before. */
DEVICE void cluster_send(uint32_t there, uint32_t barrier, uint32_t x, uint32_t y) {
    if constexpr (HAS_CLUSTERS)
        asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(there),
            "r"(x), "r"(y), "r"(barrier)
            : "memory");
}
DEVICE void cluster_send_piece(uint32_t there, uint32_t barrier, const packed<uint32_t, 4> &x) {
    if constexpr (HAS_CLUSTERS)
        asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                there),
            "r"(x.v[0]), "r"(x.v[1]), "r"(x.v[2]), "r"(x.v[3]), "r"(barrier)
            : "memory");
}

#endif
