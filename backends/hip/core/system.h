/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that devices of a system share: packets of 16 bytes, whose halves arrive whole; words; fences; a clock. */
#ifndef TRINE_HIP_SYSTEM_H
#define TRINE_HIP_SYSTEM_H

#include <target.h>

/* A launch that waits for other devices: those of a stream follow each other, so that no block of the next one takes
 * the place of one that another waits for. A CU has a half of the blocks that an SM has: so they have registers. */
#define ENTRY_ALONE(name, threads, held, params) ENTRY_HELD(name, threads, (held) / 2, params)

struct alignas(16) packet {
    uint32_t word[4];
};

#define SYSTEM_MEMORY __attribute__((address_space(1)))

/* Atomic accesses have at most 8 bytes; nothing says that wider ones arrive whole. Those of the system's scope pass by
 * the caches (LLVM User Guide for AMDGPU, memory models of GFX90A and GFX942: sc0 and sc1; on gfx90a glc of loads, and
 * memory that the second level does not keep). */
DEVICE void system_store(uint64_t *to, uint64_t x) {
    __hip_atomic_store((SYSTEM_MEMORY uint64_t *)to, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
DEVICE uint64_t system_load(const uint64_t *from) {
    return __hip_atomic_load((const SYSTEM_MEMORY uint64_t *)from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
DEVICE uint32_t system_load(const uint32_t *from) {
    return __hip_atomic_load((const SYSTEM_MEMORY uint32_t *)from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
DEVICE void system_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

DEVICE void packet_put(char *to, const packet &p) {
    system_store((uint64_t *)to, p.word[0] | (uint64_t)p.word[1] << 32);
    system_store((uint64_t *)to + 1, p.word[2] | (uint64_t)p.word[3] << 32);
}
DEVICE packet packet_get(const char *from) {
    const uint64_t a = system_load((const uint64_t *)from), b = system_load((const uint64_t *)from + 1);
    return packet{ { (uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32) } };
}

/* Of a clock of 100 MHz (AMD CDNA3 Instruction Set Architecture, S_MEMREALTIME). */
DEVICE uint64_t nanoseconds() { return __builtin_amdgcn_s_memrealtime() * 10; }
DEVICE void pause_thread() { __builtin_amdgcn_s_sleep(1); }

#endif
