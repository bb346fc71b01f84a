/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions that sm_90a adds for tiles (PTX ISA 9.0): copies of boxes of tensors, products of warpgroups, more
 * of clusters and of barriers. */
#ifndef TRINE_TILE_HOPPER_H
#define TRINE_TILE_HOPPER_H

#include "backends/simt/core/simt.h"
#include "cluster.h"
#include "map.h"
#include "types.h"
#include "vote.h"

enum { WARPGROUP = 128 };

/* One lane of a warp whose lanes are together. */
DEVICE bool elected() {
    uint32_t yes;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(yes));
    return yes;
}

template <int N> DEVICE void registers_fewer() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DEVICE void registers_more() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

/* --------------------------------------------------------------------------------------------------------- clusters */

DEVICE int cluster_size() {
    uint32_t size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return (int)size;
}
DEVICE void shared_store(uint32_t address, uint32_t x) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
}
DEVICE void shared_store(uint32_t address, uint32_t x, uint32_t y) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(x), "r"(y) : "memory");
}
DEVICE void shared_store_piece(uint32_t address, const packed<uint32_t, 4> &x) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x.v[0]), "r"(x.v[1]), "r"(x.v[2]),
                 "r"(x.v[3])
                 : "memory");
}
DEVICE packed<uint32_t, 4> shared_load_piece(uint32_t address) {
    packed<uint32_t, 4> x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.v[0]), "=r"(x.v[1]), "=r"(x.v[2]), "=r"(x.v[3])
                 : "r"(address)
                 : "memory");
    return x;
}
DEVICE void shared_load(uint32_t address, uint32_t &x, uint32_t &y) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(address) : "memory");
}
/* 16 bytes of global memory, without a branch. */
DEVICE void store_piece_if(bool yes, void *to, const packed<uint32_t, 4> &x) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %0, 0;\n@p st.global.v4.b32 [%1], {%2, %3, %4, %5};\n}" ::"r"((int)yes),
        "l"(to), "r"(x.v[0]), "r"(x.v[1]), "r"(x.v[2]), "r"(x.v[3])
        : "memory");
}
/* The other way round, not from the first-level cache; 0 where it is not loaded. */
DEVICE packed<uint32_t, 4> load_piece_if(bool yes, const void *from) {
    packed<uint32_t, 4> x = {};
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n@p ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];\n}"
                 : "+r"(x.v[0]), "+r"(x.v[1]), "+r"(x.v[2]), "+r"(x.v[3])
                 : "l"(from), "r"((int)yes)
                 : "memory");
    return x;
}
/* Four matrices of 8 by 8 elements of 16 bits, each thread having two of row t%32/4 from column t%4*2 on. Row l%8 of
 * matrix l/8 becomes the 16 bytes at lane l's address; TURNED: its column l%8. */
template <bool TURNED = false>
DEVICE void store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    if constexpr (TURNED)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a),
                     "r"(b), "r"(c), "r"(d)
                     : "memory");
    else
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
                     "r"(c), "r"(d)
                     : "memory");
}

/* The first two of these. */
template <bool TURNED> DEVICE void store_two_matrices(uint32_t address, uint32_t a, uint32_t b) {
    if constexpr (TURNED)
        asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b)
                     : "memory");
    else
        asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b)
                     : "memory");
}
/* The other way round. */
DEVICE void load_matrices(uint32_t (&x)[4], uint32_t address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}

/* Some warps of the block, `threads` in all; 0 is sync_block()'s. */
DEVICE void sync_some(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* --------------------------------------------------------------------------------------------------------- barriers */

/* Of any block of the cluster. */
DEVICE void barrier_arrive(uint32_t cluster_barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_barrier) : "memory");
}

/* ----------------------------------------------------------------------------------------------------------- copies */

DEVICE void tensor_map_fetch(const tensor_map *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

/* The box at (x, y, z) to shared memory; its bytes count for the barrier. What lies outside the tensor is 0. */
DEVICE void copy_box(uint32_t to, const tensor_map *map, uint32_t barrier, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
            "r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}
/* The same to every block in `blocks`, and for its barrier. */
DEVICE void copy_box_to(uint16_t blocks, uint32_t to, const tensor_map *map, uint32_t barrier, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%4, %5, %6}], [%2], %3;" ::"r"(to),
                 "l"(map), "r"(barrier), "h"(blocks), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* Of patches (cuda_map_encode_patches) those positions that follow one which begins at (w, h) of image n, channels from
 * `channel` on, at the tap that is so far from the first. */
DEVICE void copy_patches(uint32_t to, const tensor_map *map, uint32_t barrier, int channel, int w, int h, int n,
                         int far_w, int far_h) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
                 "%4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(channel), "r"(w), "r"(h), "r"(n), "h"((uint16_t)far_w),
                 "h"((uint16_t)far_h)
                 : "memory");
}

/* Shared memory written by threads is seen by the copies that one of them starts after a barrier. */
DEVICE void copies_see() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* Until at most N of the thread's boxes are still to be read from shared memory. */
template <int N> DEVICE void copy_box_out_wait() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

/* --------------------------------------------------------------------------------------------------------- products */

/* Operands in shared memory are rows of 128 bytes under the 128-byte swizzle, 8 rows to 1024 bytes. Consecutive in k:
 * rows are lanes, and 16 elements of 16 bits further along k are 32 bytes on. Consecutive lanes: rows are elements of
 * k, 64 lanes to a panel; `panel` is the distance of panels. */
DEVICE uint64_t wgmma_operand(uint32_t address, int panel) {
    enum { SWIZZLE_128 = 1 };
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(panel >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)SWIZZLE_128 << 62;
}

DEVICE void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Until at most N committed groups are in flight. */
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
/* Keeps the compiler from using sums before the wait in front of this. */
template <int N> DEVICE void wgmma_settle(float (&sum)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(sum[i])::"memory");
}
template <int N> DEVICE void wgmma_settle(int32_t (&sum)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+r"(sum[i])::"memory");
}

/* sum (+)= a b: 64 by N, 32 bytes of k. Thread t has, of row t/32*16 + t%32/4, columns 8j + t%4*2 and the next in
 * sum[4j] and sum[4j + 1], and of the row 8 below in sum[4j + 2] and sum[4j + 3]. A_ACROSS, B_ACROSS: its lanes are
 * consecutive (16-bit types alone). `add` 0: what was in sum does not count. */
template <class T, int N, bool A_ACROSS, bool B_ACROSS> struct wgmma;

/* The operands %0 to %n - 1 of a list. t: the tens. */
#define R2(t) "%" #t "0, %" #t "1"
#define R4(t) R2(t) ", %" #t "2, %" #t "3"
#define R6(t) R4(t) ", %" #t "4, %" #t "5"
#define R8(t) R6(t) ", %" #t "6, %" #t "7"
#define R10(t) R8(t) ", %" #t "8, %" #t "9"
#define TENS1 R10()
#define TENS2 TENS1 ", " R10(1)
#define TENS3 TENS2 ", " R10(2)
#define TENS4 TENS3 ", " R10(3)
#define TENS5 TENS4 ", " R10(4)
#define TENS6 TENS5 ", " R10(5)
#define TENS7 TENS6 ", " R10(6)
#define TENS8 TENS7 ", " R10(7)
#define TENS9 TENS8 ", " R10(8)
#define TENS10 TENS9 ", " R10(9)
#define TENS11 TENS10 ", " R10(10)
#define TENS12 TENS11 ", " R10(11)
#define LIST4 R4()
#define LIST8 R8()
#define LIST16 TENS1 ", " R6(1)
#define LIST32 TENS3 ", " R2(3)
#define LIST36 TENS3 ", " R6(3)
#define LIST40 TENS4
#define LIST44 TENS4 ", " R4(4)
#define LIST48 TENS4 ", " R8(4)
#define LIST52 TENS5 ", " R2(5)
#define LIST56 TENS5 ", " R6(5)
#define LIST60 TENS6
#define LIST64 TENS6 ", " R4(6)
#define LIST72 TENS7 ", " R2(7)
#define LIST80 TENS8
#define LIST88 TENS8 ", " R8(8)
#define LIST96 TENS9 ", " R6(9)
#define LIST104 TENS10 ", " R4(10)
#define LIST112 TENS11 ", " R2(11)
#define LIST120 TENS12
#define LIST128 TENS12 ", " R8(12)

#define S4(c, i) c(s[i]), c(s[(i) + 1]), c(s[(i) + 2]), c(s[(i) + 3])
#define S8(c, i) S4(c, i), S4(c, (i) + 4)
#define S16(c, i) S8(c, i), S8(c, (i) + 8)
#define S32(c, i) S16(c, i), S16(c, (i) + 16)
#define S36(c, i) S32(c, i), S4(c, (i) + 32)
#define S40(c, i) S32(c, i), S8(c, (i) + 32)
#define S44(c, i) S40(c, i), S4(c, (i) + 40)
#define S48(c, i) S32(c, i), S16(c, (i) + 32)
#define S52(c, i) S48(c, i), S4(c, (i) + 48)
#define S56(c, i) S48(c, i), S8(c, (i) + 48)
#define S60(c, i) S56(c, i), S4(c, (i) + 56)
#define S64(c, i) S32(c, i), S32(c, (i) + 32)
#define S72(c, i) S64(c, i), S8(c, (i) + 64)
#define S80(c, i) S64(c, i), S16(c, (i) + 64)
#define S88(c, i) S80(c, i), S8(c, (i) + 80)
#define S96(c, i) S64(c, i), S32(c, (i) + 64)
#define S104(c, i) S96(c, i), S8(c, (i) + 96)
#define S112(c, i) S96(c, i), S16(c, (i) + 96)
#define S120(c, i) S112(c, i), S8(c, (i) + 112)
#define S128(c, i) S64(c, i), S64(c, (i) + 64)

/* `a`, `b`, `p`, ...: the numbers of the operands behind the sums. */
#define WGMMA_FLOAT(T, N, COUNT, a, b, p, x, y) \
    template <bool A_ACROSS, bool B_ACROSS> struct wgmma<T, N, A_ACROSS, B_ACROSS> { \
        using sum = float; \
        static DEVICE void multiply(float (&s)[COUNT], uint64_t left, uint64_t right, int add) { \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" LIST##COUNT \
                         "}, %" #a ", %" #b ", p, 1, 1, %" #x ", %" #y ";\n}" \
                         : S##COUNT("+f", 0) \
                         : "l"(left), "l"(right), "r"(add), "n"((int)A_ACROSS), "n"((int)B_ACROSS)); \
        } \
    };
#define WGMMA_BYTES(N, COUNT, a, b, p) \
    template <> struct wgmma<int8_t, N, false, false> { \
        using sum = int32_t; \
        static DEVICE void multiply(int32_t (&s)[COUNT], uint64_t left, uint64_t right, int add) { \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k32.s32.s8.s8 {" LIST##COUNT "}, %" #a ", %" #b \
                                                                                              ", p;\n}" \
                         : S##COUNT("+r", 0) \
                         : "l"(left), "l"(right), "r"(add)); \
        } \
    };
/* Those whose operands are consecutive in k alone. */
#define WGMMA_ALONG(T, N, K, types, COUNT, a, b, p) \
    template <> struct wgmma<T, N, false, false> { \
        using sum = float; \
        static DEVICE void multiply(float (&s)[COUNT], uint64_t left, uint64_t right, int add) { \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #p ", 0;\n" \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k" #K ".f32." types " {" LIST##COUNT \
                         "}, %" #a ", %" #b ", p, 1, 1;\n}" \
                         : S##COUNT("+f", 0) \
                         : "l"(left), "l"(right), "r"(add)); \
        } \
    };
#define WGMMA(N, COUNT, a, b, p, x, y) \
    WGMMA_FLOAT(bf16, N, COUNT, a, b, p, x, y) \
    WGMMA_FLOAT(f16, N, COUNT, a, b, p, x, y) \
    WGMMA_BYTES(N, COUNT, a, b, p) \
    WGMMA_ALONG(tf32, N, 8, "tf32.tf32", COUNT, a, b, p) \
    WGMMA_ALONG(e4m3_e4m3, N, 32, "e4m3.e4m3", COUNT, a, b, p) \
    WGMMA_ALONG(e4m3_e5m2, N, 32, "e4m3.e5m2", COUNT, a, b, p) \
    WGMMA_ALONG(e5m2_e4m3, N, 32, "e5m2.e4m3", COUNT, a, b, p)

WGMMA(8, 4, 4, 5, 6, 7, 8)
WGMMA(16, 8, 8, 9, 10, 11, 12)
WGMMA(32, 16, 16, 17, 18, 19, 20)
WGMMA(64, 32, 32, 33, 34, 35, 36)
WGMMA(72, 36, 36, 37, 38, 39, 40)
WGMMA(80, 40, 40, 41, 42, 43, 44)
WGMMA(88, 44, 44, 45, 46, 47, 48)
WGMMA(96, 48, 48, 49, 50, 51, 52)
WGMMA(104, 52, 52, 53, 54, 55, 56)
WGMMA(112, 56, 56, 57, 58, 59, 60)
WGMMA(120, 60, 60, 61, 62, 63, 64)
WGMMA(128, 64, 64, 65, 66, 67, 68)
WGMMA(144, 72, 72, 73, 74, 75, 76)
WGMMA(160, 80, 80, 81, 82, 83, 84)
WGMMA(176, 88, 88, 89, 90, 91, 92)
WGMMA(192, 96, 96, 97, 98, 99, 100)
WGMMA(208, 104, 104, 105, 106, 107, 108)
WGMMA(224, 112, 112, 113, 114, 115, 116)
WGMMA(240, 120, 120, 121, 122, 123, 124)
WGMMA(256, 128, 128, 129, 130, 131, 132)

#undef R2
#undef R4
#undef R6
#undef R8
#undef R10
#undef TENS1
#undef TENS2
#undef TENS3
#undef TENS4
#undef TENS5
#undef TENS6
#undef TENS7
#undef TENS8
#undef TENS9
#undef TENS10
#undef TENS11
#undef TENS12
#undef LIST4
#undef LIST8
#undef LIST16
#undef LIST32
#undef LIST36
#undef LIST40
#undef LIST44
#undef LIST48
#undef LIST52
#undef LIST56
#undef LIST60
#undef LIST64
#undef LIST72
#undef LIST80
#undef LIST88
#undef LIST96
#undef LIST104
#undef LIST112
#undef LIST120
#undef LIST128
#undef S4
#undef S8
#undef S16
#undef S32
#undef S36
#undef S40
#undef S44
#undef S48
#undef S52
#undef S56
#undef S60
#undef S64
#undef S72
#undef S80
#undef S88
#undef S96
#undef S104
#undef S112
#undef S120
#undef S128
#undef WGMMA_FLOAT
#undef WGMMA_BYTES
#undef WGMMA_ALONG
#undef WGMMA

#endif
