/* SPDX-License-Identifier: Apache-2.0 */
/* The device vocabulary in CUDA's terms: what backends/simt/core/simt.h asks of a vendor.
 * Instructions are those of the PTX ISA 9.0. */
#ifndef TRINE_CUDA_TARGET_H
#define TRINE_CUDA_TARGET_H

#include <stdint.h>

#ifdef __CUDA_ARCH__
#define CUDA_ARCH __CUDA_ARCH__
#else
#define CUDA_ARCH 0 /* on the host, which only parses */
#endif

#define DEVICE __device__ __forceinline__
#define DEVICE_CALLED __device__ __noinline__ /* long, and rarely of use */
#define SHARED __shared__

/* Programmatic dependent launch (PTX ISA 9.0, griddepcontrol): a launch may begin while the previous one ends. Its
 * blocks may come once all of the previous one's have said so, and what that wrote is seen once it has been waited for.
 * Before sm_90 launches follow each other. */
DEVICE void launch_next() {
    if constexpr (CUDA_ARCH >= 900) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
DEVICE void launch_wait() {
    if constexpr (CUDA_ARCH >= 900) asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* A function that the host launches, with parameters `p`: in blocks of `threads`; with so few registers that an SM
 * holds `blocks` at a time; and one of these that says itself when the next launch may come, and waits for the previous
 * one. */
#define ENTRY_OF(name, bounds, params) \
    static DEVICE void name##_body(const params &p); \
    extern "C" __global__ void bounds name(const __grid_constant__ params p) { \
        launch_next(); \
        launch_wait(); \
        name##_body(p); \
    } \
    static DEVICE void name##_body(const params &p)
#define ENTRY(name, threads, params) ENTRY_OF(name, __launch_bounds__(threads), params)
#define ENTRY_HELD(name, threads, blocks, params) ENTRY_OF(name, __launch_bounds__(threads, blocks), params)
#define ENTRY_AHEAD(name, threads, blocks, params) \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ params p)

enum { WARP = 32 };

DEVICE int thread_index() { return (int)threadIdx.x; }
DEVICE int64_t block_index() { return blockIdx.x; }
DEVICE int64_t block_count() { return gridDim.x; }
DEVICE void sync_block() { __syncthreads(); }

/* The shared memory whose size the launch says, aligned to 1024. */
DEVICE char *launch_memory() {
    extern __shared__ __align__(1024) char memory[];
    return memory;
}

template <class Value> DEVICE Value shuffle_xor(Value x, int mask) {
    constexpr int WORDS = sizeof(Value) / 4;
    uint32_t word[WORDS];
    __builtin_memcpy(word, &x, sizeof x);
#pragma unroll
    for (int i = 0; i < WORDS; i++) word[i] = __shfl_xor_sync(0xffffffffu, word[i], mask);
    __builtin_memcpy(&x, word, sizeof x);
    return x;
}

/* Is it so in any thread of the warp? All of its threads ask together. */
DEVICE bool any_of_warp(bool yes) { return __any_sync(0xffffffffu, yes); }

/* What the thread before has, this one being number `lane` of `lanes` of a warp that come here. */
DEVICE uint32_t shuffle_before(uint32_t x, int lane, int lanes) {
    return __shfl_up_sync(0xffffffffu >> (WARP - lanes) << (thread_index() % WARP - lane), x, 1);
}

/* One access of 16 or of 8 bytes of global memory. Not declared to touch memory, so that loads of what the thread does
 * not write itself may go before it. */
DEVICE void store_words(void *to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(a), "r"(b), "r"(c), "r"(d));
}
DEVICE void store_words(void *to, uint32_t a, uint32_t b) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(a), "r"(b));
}

/* The compiler does not compute `at`, of global memory, anew where it is used. */
template <class Bits> DEVICE void keep_address(Bits *&at) {
    asm volatile("" : "+l"(at));
    __builtin_assume(__isGlobal(at));
}

/* Nor x. */
DEVICE void keep_number(uint32_t &x) { asm volatile("" : "+r"(x)); }

DEVICE float product(float a, float b) { return __fmul_rn(a, b); }
DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
/* sum += a b, and x &= bits, if or unless word <= last: one instruction behind the comparison. */
DEVICE void add_product_if(uint32_t word, uint32_t last, float &sum, float a, float b) {
    asm("{\n.reg .pred p;\nsetp.le.u32 p, %3, %4;\n@p fma.rn.f32 %0, %1, %2, %0;\n}"
        : "+f"(sum)
        : "f"(a), "f"(b), "r"(word), "r"(last));
}
DEVICE void mask_unless(uint32_t word, uint32_t last, uint32_t &x, uint32_t bits) {
    asm("{\n.reg .pred p;\nsetp.gt.u32 p, %2, %3;\n@p and.b32 %0, %0, %1;\n}"
        : "+r"(x)
        : "r"(bits), "r"(word), "r"(last));
}

DEVICE float square_root(float x) { return __fsqrt_rn(x); }
DEVICE double square_root(double x) { return __dsqrt_rn(x); }

/* Of a number and a NaN, the number. */
DEVICE float larger(float a, float b) { return fmaxf(a, b); }

/* x, or -0 if it is less; NaN stays. */
DEVICE float not_negative(float x) {
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(-0.0f));
    return y;
}

/* 2 ulp and 1 ulp (sections on ex2 and rcp); subnormals are taken for 0. */
DEVICE float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* 2^-22.9 (section on rsqrt). */
DEVICE float reciprocal_root(float x) {
    float y;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

DEVICE float float_from_f16(uint16_t bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
DEVICE uint16_t f16_from_float(float x) {
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
DEVICE uint16_t bf16_from_float(float x) {
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
DEVICE uint32_t f16_pair(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
DEVICE uint32_t bf16_pair(float low, float high) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* Conversions of two of the OCP's 8-bit values, e4m3 and e5m2 by their bits of fraction;
 * what is beyond the largest becomes it. */
template <int FRACTION> struct float8_units;
#define FLOAT8_UNITS(FRACTION, type) \
    template <> struct float8_units<FRACTION> { \
        static constexpr bool THERE = CUDA_ARCH >= 890; \
        static DEVICE uint32_t f16_pair(uint16_t codes) { \
            uint32_t pair; \
            asm("cvt.rn.f16x2." type "x2 %0, %1;" : "=r"(pair) : "h"(codes)); \
            return pair; \
        } \
        static DEVICE uint16_t pair(float low, float high) { \
            uint16_t codes; \
            asm("cvt.rn.satfinite." type "x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low)); \
            return codes; \
        } \
    };
FLOAT8_UNITS(3, "e4m3")
FLOAT8_UNITS(2, "e5m2")
#undef FLOAT8_UNITS

#endif
