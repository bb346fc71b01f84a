/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that devices of a system share: packets of 16 bytes, whose halves arrive whole; words; fences; a clock. */
#ifndef TRINE_CUDA_SYSTEM_H
#define TRINE_CUDA_SYSTEM_H

#include <target.h>

/* A launch that waits for other devices: the next one's blocks do not come before it has ended, since they might take
 * the place of one that another waits for. */
#define ENTRY_ALONE(name, threads, held, params) \
    static DEVICE void name##_body(const params &p); \
    extern "C" __global__ void __launch_bounds__(threads, held) name(const __grid_constant__ params p) { \
        launch_wait(); \
        name##_body(p); \
    } \
    static DEVICE void name##_body(const params &p)

struct alignas(16) packet {
    uint32_t word[4];
};

/* Each element of a vector is accessed as a scalar would be (PTX ISA 9.0, section on vectors in the memory model). */
DEVICE void packet_put(char *to, const packet &p) {
    const uint64_t a = p.word[0] | (uint64_t)p.word[1] << 32, b = p.word[2] | (uint64_t)p.word[3] << 32;
    asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}
DEVICE packet packet_get(const char *from) {
    uint64_t a, b;
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(from) : "memory");
    return packet{ { (uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32) } };
}

DEVICE void system_store(uint64_t *to, uint64_t x) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(x) : "memory");
}
DEVICE uint32_t system_load(const uint32_t *from) {
    uint32_t x;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
    return x;
}
DEVICE void system_fence() { __threadfence_system(); }

DEVICE uint64_t nanoseconds() {
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}
DEVICE void pause_thread() {}

#endif
