/* SPDX-License-Identifier: Apache-2.0 */
/* The device vocabulary in CDNA's terms: what backends/simt/core/simt.h asks of a vendor.
 * No header of ROCm: clang's builtins suffice. */
#ifndef TRINE_HIP_TARGET_H
#define TRINE_HIP_TARGET_H

#include <stdint.h>

#include "grid.h"

#define DEVICE inline __attribute__((device, always_inline))
#define SHARED __attribute__((shared))

/* A function that the host launches, in blocks of `threads`, with parameters `p` and the number of blocks: the last row
 * of the grid may not be full. And one with so few registers that a compute unit, which has four SIMDs, holds `held`
 * blocks at a time. */
#define ENTRY(name, threads, params) ENTRY_HELD(name, threads, 1, params)
#define ENTRY_HELD(name, threads, held, params) \
    DEVICE void name##_block(const params &p); \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads), \
                              amdgpu_waves_per_eu(target_waves((held) * (threads))))) void \
    name(const params p, int64_t blocks) { \
        if (block_index() < blocks) name##_block(p); \
    } \
    DEVICE void name##_block(const params &p)

enum { WARP = 64 };

constexpr int target_waves(int threads) { return threads <= 4 * WARP ? 1 : threads / (4 * WARP); }

DEVICE int thread_index() { return (int)__builtin_amdgcn_workitem_id_x(); }
DEVICE int64_t block_index() {
    return (int64_t)__builtin_amdgcn_workgroup_id_y() * GRID_WIDTH + __builtin_amdgcn_workgroup_id_x();
}
DEVICE void sync_block() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

template <class Value> DEVICE Value shuffle_xor(Value x, int mask) {
    constexpr int WORDS = sizeof(Value) / 4;
    int word[WORDS];
    __builtin_memcpy(word, &x, sizeof x);
#pragma unroll
    for (int i = 0; i < WORDS; i++) word[i] = __builtin_amdgcn_ds_bpermute((thread_index() ^ mask) * 4, word[i]);
    __builtin_memcpy(&x, word, sizeof x);
    return x;
}

/* Is it so in any thread of the warp? All of its threads ask together. */
DEVICE bool any_of_warp(bool yes) { return __builtin_amdgcn_ballot_w64(yes) != 0; }

/* What the thread before has, this one being number `lane` of `lanes` of a warp that come here. */
DEVICE uint32_t shuffle_before(uint32_t x, int, int) {
    return (uint32_t)__builtin_amdgcn_ds_bpermute((thread_index() - 1) * 4, (int)x);
}

/* One access of 16 or of 8 bytes. */
typedef uint32_t words_4 __attribute__((ext_vector_type(4)));
typedef uint32_t words_2 __attribute__((ext_vector_type(2)));
DEVICE void store_words(void *to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    *(words_4 *)to = words_4{ a, b, c, d };
}
DEVICE void store_words(void *to, uint32_t a, uint32_t b) { *(words_2 *)to = words_2{ a, b }; }

template <class Bits> DEVICE void keep_address(Bits *&) {} /* it is kept as it is */

DEVICE float product(float a, float b) { return a * b; }
DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE float square_root(float x) { return __builtin_sqrtf(x); }
DEVICE double square_root(double x) { return __builtin_sqrt(x); }

/* Of a number and a NaN, the number. */
DEVICE float larger(float a, float b) { return __builtin_fmaxf(a, b); }

/* x, or -0 if it is less; NaN stays. */
DEVICE float not_negative(float x) { return x < 0 ? -0.0f : x; }

/* v_exp_f32 and v_rcp_f32: 1 ulp (AMD CDNA3 Instruction Set Architecture, chapter 16); subnormals are taken for 0. */
DEVICE float exp2_approx(float x) { return __builtin_amdgcn_exp2f(x); }
DEVICE float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }

DEVICE float float_from_f16(uint16_t bits) { return (float)__builtin_bit_cast(_Float16, bits); }
/* LLVM 19 to 22 make one v_fma_mixlo_f16 of a product and its rounding, with an addend of +0 that loses the sign of a
 * zero: x must be seen as any float. */
DEVICE uint16_t f16_from_float(float x) {
    __asm__("" : "+v"(x));
    return __builtin_bit_cast(uint16_t, (_Float16)x);
}
DEVICE uint32_t f16_pair(float low, float high) { return f16_from_float(low) | (uint32_t)f16_from_float(high) << 16; }
typedef float floats_2 __attribute__((ext_vector_type(2)));
typedef __bf16 bf16s_2 __attribute__((ext_vector_type(2)));
DEVICE uint32_t bf16_pair(float low, float high) {
    return __builtin_bit_cast(uint32_t, __builtin_convertvector(floats_2{ low, high }, bf16s_2));
}
DEVICE uint16_t bf16_from_float(float x) { return (uint16_t)bf16_pair(x, 0); }

/* Not all of the chips convert the OCP's 8-bit types. */
template <int FRACTION> struct float8_units {
    static constexpr bool THERE = false;
};

#endif
