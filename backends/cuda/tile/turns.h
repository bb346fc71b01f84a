/* SPDX-License-Identifier: Apache-2.0 */
/* More of sm_90a (PTX ISA 9.0): matrices to shared memory across, copies of consecutive bytes, sums in memory. */
#ifndef TRINE_TILE_TURNS_H
#define TRINE_TILE_TURNS_H

#include "order.h"
#include "rows.h"

/* Four matrices of 8 by 8 elements of 16 bits, each thread having two of row t%32/4 from column t%4*2 on. Column l%8 of
 * matrix l/8 becomes the 16 bytes at lane l's address. */
DEVICE void store_matrices_across(uint32_t address, const uint32_t *r) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

/* thread_index() read where it is wanted, so that nothing that follows from it takes a register before. */
DEVICE int thread_index_now() {
    int x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}

DEVICE void shared_store(uint32_t address, float x, float y, float z, float w) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}
DEVICE void shared_load(float (&x)[2], uint32_t address) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(address));
}
DEVICE int shared_load(uint32_t address) {
    int x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
    return x;
}

/* sum = a b as wgmma does, from nothing: what was in sum is not an operand, so that its registers are free before. */
template <class T, int N, bool A_ACROSS, bool B_ACROSS> struct wgmma_first;

#define N8(a, b, c, d, e, f, g, h) "%" #a ", %" #b ", %" #c ", %" #d ", %" #e ", %" #f ", %" #g ", %" #h
#define N10(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9"
#define NAMES32 N10() ", " N10(1) ", " N10(2) ", %30, %31"
#define NAMES64 N10() ", " N10(1) ", " N10(2) ", " N10(3) ", " N10(4) ", " N10(5) ", %60, %61, %62, %63"
#define O8(i) \
    "=f"(s[i]), "=f"(s[i + 1]), "=f"(s[i + 2]), "=f"(s[i + 3]), "=f"(s[i + 4]), "=f"(s[i + 5]), "=f"(s[i + 6]), \
        "=f"(s[i + 7])
#define OUT32 O8(0), O8(8), O8(16), O8(24)
#define OUT64 OUT32, O8(32), O8(40), O8(48), O8(56)
#define WGMMA_FIRST(T, N, COUNT, a, b, x, y) \
    template <bool A_ACROSS, bool B_ACROSS> struct wgmma_first<T, N, A_ACROSS, B_ACROSS> { \
        static DEVICE void multiply(float (&s)[COUNT], uint64_t left, uint64_t right) { \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" NAMES##COUNT \
                         "}, %" #a ", %" #b ", 0, 1, 1, %" #x ", %" #y ";" \
                         : OUT##COUNT \
                         : "l"(left), "l"(right), "n"((int)A_ACROSS), "n"((int)B_ACROSS)); \
        } \
    };
WGMMA_FIRST(bf16, 64, 32, 32, 33, 34, 35)
WGMMA_FIRST(f16, 64, 32, 32, 33, 34, 35)
WGMMA_FIRST(bf16, 128, 64, 64, 65, 66, 67)
WGMMA_FIRST(f16, 128, 64, 64, 65, 66, 67)

#undef N8
#undef N10
#undef NAMES32
#undef NAMES64
#undef O8
#undef OUT32
#undef OUT64
#undef WGMMA_FIRST

/* Consecutive bytes, multiples of 16 at multiples of 16: to shared memory, for a barrier; from there;
 * and from there as floats that are added. */
DEVICE void copy_line(uint32_t to, const void *from, int bytes, uint32_t barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
DEVICE void copy_line_out(void *to, uint32_t from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}
DEVICE void copy_line_add(void *to, uint32_t from, int bytes) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(
            to),
        "r"(from), "r"(bytes)
        : "memory");
}
/* Until all that the thread's copies wrote is written. */
DEVICE void copy_out_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

/* What the thread has seen of memory, copies that it starts see too. */
DEVICE void copies_see_memory() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

#endif
