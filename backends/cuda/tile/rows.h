/* SPDX-License-Identifier: Apache-2.0 */
/* More of sm_90a for tiles (PTX ISA 9.0): products whose left operand is in registers, boxes of tensors of four
 * dimensions, turns of warpgroups. */
#ifndef TRINE_TILE_ROWS_H
#define TRINE_TILE_ROWS_H

#include "hopper.h"

/* The box at (x, y, z, w) to shared memory; its bytes count for the barrier. What lies outside the tensor is 0. */
DEVICE void copy_box(uint32_t to, const tensor_map *map, uint32_t barrier, int x, int y, int z, int w) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
                 "%6}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

/* Of the block itself. */
DEVICE void barrier_arrive_here(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

DEVICE void shared_store(uint32_t address, uint16_t x) {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(address), "h"(x) : "memory");
}

/* The value of lane 0, which the compiler then knows to be the same in all lanes. */
DEVICE uint32_t shuffle_first(uint32_t x) { return __shfl_sync(0xffffffffu, x, 0); }

/* The least, and the most, of a warp's. */
DEVICE int least_of_warp(int x) { return __reduce_min_sync(0xffffffffu, x); }
DEVICE int most_of_warp(int x) { return __reduce_max_sync(0xffffffffu, x); }

/* As barrier_wait() of both, in the time of one. */
DEVICE void barriers_wait(uint32_t a, uint32_t a_parity, uint32_t b, uint32_t b_parity) {
    uint32_t over;
    do
        asm volatile("{\n.reg .pred p, q;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 q, [%3], %4;\nand.pred p, p, q;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(over)
                     : "r"(a), "r"(a_parity), "r"(b), "r"(b_parity)
                     : "memory");
    while (!over);
}

/* Counts for a barrier of `threads` that others wait at by sync_some(). */
DEVICE void arrive_some(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* sum (+)= a b as wgmma does, 64 by N, 16 elements of k. The left operand is in registers as sums are, in pairs: its
 * columns 8j and on are sums 4j to 4j + 3. The right operand's lanes are consecutive. */
template <class T, int N> struct wgmma_rows;

#define Q8(a, b, c, d, e, f, g, h) "%" #a ", %" #b ", %" #c ", %" #d ", %" #e ", %" #f ", %" #g ", %" #h
#define T10(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9"
#define LIST32 T10() ", " T10(1) ", " T10(2) ", %30, %31"
#define LIST40 T10() ", " T10(1) ", " T10(2) ", " T10(3)
#define LIST48 LIST40 ", " Q8(40, 41, 42, 43, 44, 45, 46, 47)
#define LIST64 LIST40 ", " T10(4) ", " T10(5) ", %60, %61, %62, %63"
#define LIST128 \
    LIST40 ", " T10(4) ", " T10(5) ", " T10(6) ", " T10(7) ", " T10(8) ", " T10(9) ", " T10(10) ", " T10(11) ", " Q8( \
        120, 121, 122, 123, 124, 125, 126, 127)

#define S8(i) \
    "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]), "+f"(s[i + 6]), \
        "+f"(s[i + 7])
#define SUMS32 S8(0), S8(8), S8(16), S8(24)
#define SUMS40 SUMS32, S8(32)
#define SUMS48 SUMS40, S8(40)
#define SUMS64 SUMS48, S8(48), S8(56)
#define SUMS128 SUMS64, S8(64), S8(72), S8(80), S8(88), S8(96), S8(104), S8(112), S8(120)

/* `a`, ...: the numbers of the operands behind the sums. */
#define WGMMA_ROWS(T, N, COUNT, a, b, c, d, e, p) \
    template <> struct wgmma_rows<T, N> { \
        static DEVICE void multiply(float (&s)[COUNT], const uint32_t *left, uint64_t right, int add) { \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST##COUNT \
                         "}, {%" #a ", %" #b ", %" #c ", %" #d "}, %" #e ", p, 1, 1, 1;\n}" \
                         : SUMS##COUNT \
                         : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(add)); \
        } \
    };
WGMMA_ROWS(bf16, 64, 32, 32, 33, 34, 35, 36, 37)
WGMMA_ROWS(f16, 64, 32, 32, 33, 34, 35, 36, 37)
WGMMA_ROWS(bf16, 96, 48, 48, 49, 50, 51, 52, 53)
WGMMA_ROWS(f16, 96, 48, 48, 49, 50, 51, 52, 53)
WGMMA_ROWS(bf16, 128, 64, 64, 65, 66, 67, 68, 69)
WGMMA_ROWS(f16, 128, 64, 64, 65, 66, 67, 68, 69)
WGMMA_ROWS(bf16, 256, 128, 128, 129, 130, 131, 132, 133)
WGMMA_ROWS(f16, 256, 128, 128, 129, 130, 131, 132, 133)

#undef Q8
#undef T10
#undef LIST32
#undef LIST40
#undef LIST48
#undef LIST64
#undef LIST128
#undef S8
#undef SUMS32
#undef SUMS40
#undef SUMS48
#undef SUMS64
#undef SUMS128
#undef WGMMA_ROWS

#endif
