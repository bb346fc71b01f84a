/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in memory that blocks add to in turns (PTX ISA 9.0). */
#ifndef TRINE_TILE_ORDER_H
#define TRINE_TILE_ORDER_H

#include "backends/simt/core/simt.h"

/* A count in memory by which blocks follow each other: what a block did before it passed the turn on, by copies too, is
 * seen by who has waited for it. */
DEVICE void turn_wait(const int32_t *turn, int count) {
    int now;
    do asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
    while (now != count);
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
}
DEVICE void turn_pass(int32_t *turn) { asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(turn) : "memory"); }
/* A word in memory by which one block tells another that what it wrote is there: what its threads wrote before they met
 * is seen by those that meet after this. Who waited leaves it 0 for the next time. */
DEVICE void ticket_give(uint64_t *there, uint64_t ticket) {
    asm volatile("fence.acq_rel.gpu;\nst.relaxed.gpu.global.b64 [%0], %1;" ::"l"(there), "l"(ticket) : "memory");
}
DEVICE void ticket_take(uint64_t *here, uint64_t ticket) {
    uint64_t now;
    do asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(now) : "l"(here) : "memory");
    while (now != ticket);
    asm volatile("fence.acq_rel.gpu;\nst.relaxed.gpu.global.b64 [%0], %1;" ::"l"(here), "l"((uint64_t)0) : "memory");
}
/* The counter before one was added. */
DEVICE int counter_next(int32_t *counter) {
    int before;
    asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
}

DEVICE void memory_put(float *to, float x) {
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(x) : "memory");
}
DEVICE void memory_add(float *to, float x) {
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(to), "f"(x) : "memory");
}

#endif
