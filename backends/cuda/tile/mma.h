/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of sm_80 for tiles (PTX ISA 9.0): copies to shared memory, matrices of 8 x 16 bytes to registers,
 * products of warps. */
#ifndef TRINE_TILE_MMA_H
#define TRINE_TILE_MMA_H

#include "backends/simt/core/simt.h"
#include "types.h"

/* SIZE bytes (4, 8, 16) to shared memory, of which `bytes` are read and the others are 0. Done once the group that it
 * is committed to is waited for. */
template <int SIZE> DEVICE void copy_bytes(void *to, const void *from, int bytes) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    if constexpr (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(at), "l"(from), "r"(bytes), "n"(SIZE)
                     : "memory");
}
DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Until at most N of the thread's groups are in flight. */
template <int N> DEVICE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

/* All threads of one of the block's teams, which have `threads` each, whole warps. */
DEVICE void sync_team(int team, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(threads) : "memory");
}

/* 16 bytes of memory that are read once, or words that are all `none`: L2 asks for all 256 round them, L1 keeps
 * none. */
DEVICE packed<uint32_t, 4> load_once_if(bool yes, const void *from, uint32_t none = 0) {
    packed<uint32_t, 4> x;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\nmov.b32 %0, %6;\nmov.b32 %1, %6;\nmov.b32 %2, %6;\nmov.b32 %3, %6;\n"
        "@p ld.global.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%5];\n}"
        : "=&r"(x.v[0]), "=&r"(x.v[1]), "=&r"(x.v[2]), "=&r"(x.v[3])
        : "r"((int)yes), "l"(from), "r"(none));
    return x;
}

/* Four matrices of 8 rows of 16 bytes; lane l gives row l % 8 of matrix l / 8. It gets bytes l % 4 * 4 of row l / 4 of
 * each; of 16-bit elements ACROSS, it gets those of rows l % 4 * 2 and the next in column l / 4. */
template <bool ACROSS> DEVICE void load_matrices(uint32_t (&r)[4], const void *row) {
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    if constexpr (ACROSS)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
}

/* sum += a b: 16 by 8, 32 bytes of k, of which a has 16 by 16 bytes in each pair of registers, rows 8 to 15 in the odd
 * ones, and b 8 by 16 in each. Lane l has row l / 4, columns l % 4 * 2 and the next in sum[0] and sum[1], and of the
 * row 8 below in sum[2] and sum[3]. */
#define WARP_MULTIPLY(T, SUM, c, shape, types) \
    DEVICE void warp_multiply(T, SUM(&sum)[4], const uint32_t(&a)[4], uint32_t b0, uint32_t b1) { \
        asm volatile("mma.sync.aligned." shape ".row.col." types \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                     : c(sum[0]), c(sum[1]), c(sum[2]), c(sum[3]) \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)); \
    }
WARP_MULTIPLY(bf16, float, "+f", "m16n8k16", "f32.bf16.bf16.f32")
WARP_MULTIPLY(f16, float, "+f", "m16n8k16", "f32.f16.f16.f32")
WARP_MULTIPLY(tf32, float, "+f", "m16n8k8", "f32.tf32.tf32.f32")
WARP_MULTIPLY(int8_t, int32_t, "+r", "m16n8k32", "s32.s8.s8.s32")
#undef WARP_MULTIPLY

/* sum += a b in f64: 16 by 8, with 4 elements of k. Lane l has rows l / 4 and 8 below, columns l % 4 * 2 and the next,
 * as above, and gives element l % 4 of those rows of a, and of column l / 4 of b. */
DEVICE void warp_multiply(double (&sum)[4], const double (&a)[2], double b) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(b));
#else
#pragma unroll
    for (int i = 0; i < 2; i++)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(sum[2 * i]), "+d"(sum[2 * i + 1])
                     : "d"(a[i]), "d"(b));
#endif
}

#endif
