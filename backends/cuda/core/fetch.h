/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that prefetch the beginning of what they read into L2 while the previous launch ends. It is a hint (PTX ISA
 * 9.0, prefetch): what that launch still writes is not read before it is there, since there is one L2 for all SMs. */
#ifndef TRINE_CUDA_FETCH_H
#define TRINE_CUDA_FETCH_H

#include "backends/simt/core/ahead.h"
#include "target.h"

/* Prefetches the 32 bytes that `from` is in. */
DEVICE void fetch_sector(const void *from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

DEVICE void fetch_ahead(const simt_ahead &ahead) {
    const int64_t first_of_block = block_index() * blockDim.x * ahead.sectors, first = first_of_block + thread_index();
    if (first_of_block * SIMT_AHEAD_SECTOR >= ahead.bytes) return;
#pragma unroll 1
    for (int i = 0; i < ahead.sectors; i++) {
        const int64_t at = (first + i * (int)blockDim.x) * SIMT_AHEAD_SECTOR;
        if (at < ahead.bytes) fetch_sector((const char *)ahead.from + at);
    }
}

DEVICE void fetch_ahead(const simt_ahead_two &ahead) {
    fetch_ahead(ahead.of[0]);
    fetch_ahead(ahead.of[1]);
}

/* ENTRY_HELD of parameters that have an `ahead`, or one in a member. */
#define ENTRY_ASKING(name, threads, blocks, params) ENTRY_ASKING_FOR(ahead, name, threads, blocks, params)
#define ENTRY_ASKING_FOR(what, name, threads, blocks, params) \
    static DEVICE void name##_body(const params &p); \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ params p) { \
        launch_next(); \
        fetch_ahead(p.what); \
        launch_wait(); \
        name##_body(p); \
    } \
    static DEVICE void name##_body(const params &p)

#endif
