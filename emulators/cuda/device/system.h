/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that devices of a system share, on the host: a device is one of its threads. */
#ifndef TRINE_EMULATOR_SYSTEM_H
#define TRINE_EMULATOR_SYSTEM_H

#include <sched.h>
#include <time.h>

#include <target.h>

#define ENTRY_ALONE(name, threads, held, params) \
    static void run_##name(const params &p); \
    extern "C" __attribute__((visibility("default"))) unsigned entry_##name(const void *p) { \
        if (p != nullptr) run_##name(*(const params *)p); \
        return sizeof(params) | EMULATOR_ALONE; \
    } \
    static void run_##name(const params &p)

struct alignas(16) packet {
    uint32_t word[4];
};

/* An address that is not aligned to the access is an error on a device. */
DEVICE void packet_put(char *to, const packet &p) {
    if ((uintptr_t)to % sizeof p != 0) __builtin_trap();
    for (int half = 0; half < 2; half++)
        __atomic_store_n((uint64_t *)to + half, p.word[2 * half] | (uint64_t)p.word[2 * half + 1] << 32,
                         __ATOMIC_RELAXED);
}
DEVICE packet packet_get(const char *from) {
    packet p;
    if ((uintptr_t)from % sizeof p != 0) __builtin_trap();
    for (int half = 0; half < 2; half++) {
        const uint64_t x = __atomic_load_n((const uint64_t *)from + half, __ATOMIC_RELAXED);
        p.word[2 * half] = (uint32_t)x;
        p.word[2 * half + 1] = (uint32_t)(x >> 32);
    }
    return p;
}

DEVICE void system_store(uint64_t *to, uint64_t x) { __atomic_store_n(to, x, __ATOMIC_RELAXED); }
DEVICE uint32_t system_load(const uint32_t *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
DEVICE void system_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

DEVICE uint64_t nanoseconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
/* The block's other threads go on, and then other threads of the host. */
DEVICE void pause_thread() {
    emulator_wait(READY);
    if (emulator.thread == 0) sched_yield();
}

#endif
