/* SPDX-License-Identifier: Apache-2.0 */
/* The device vocabulary on the host: the threads of a block take turns, and approximate instructions are as wrong as a
 * vendor may have them. */
#ifndef TRINE_EMULATOR_TARGET_H
#define TRINE_EMULATOR_TARGET_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "emulator.h"

#define DEVICE inline
#define DEVICE_CALLED inline
#define SHARED static thread_local /* blocks of a device run one after the other */

#define ENTRY(name, threads, params) \
    static void run_##name(const params &p); \
    extern "C" __attribute__((visibility("default"))) unsigned entry_##name(const void *p) { \
        if (p != nullptr) run_##name(*(const params *)p); \
        return sizeof(params); \
    } \
    static void run_##name(const params &p)

#define ENTRY_HELD(name, threads, blocks, params) ENTRY(name, threads, params)

enum { WARP = EMULATOR_WARP };

DEVICE int thread_index() { return emulator.thread; }
DEVICE int64_t block_index() { return emulator.block; }
DEVICE int64_t block_count() { return emulator.blocks; }
DEVICE void sync_block() { emulator_wait(WAIT_BLOCK); }
DEVICE char *launch_memory() { return emulator.memory[emulator.rank]; }
template <class Value> DEVICE Value shuffle_xor(Value x, int mask) {
    uint64_t word[(sizeof x + sizeof(uint64_t) - 1) / sizeof(uint64_t)] = {};
    memcpy(word, &x, sizeof x);
    for (uint64_t &w : word) {
        emulator.slot[emulator.thread] = w;
        emulator_wait(WAIT_WARP);
        w = emulator.slot[emulator.thread ^ mask];
        emulator_wait(WAIT_WARP);
    }
    memcpy(&x, word, sizeof x);
    return x;
}
DEVICE bool any_of_warp(bool yes) {
    const int first = emulator.thread / WARP * WARP;
    bool any = false;
    emulator.slot[emulator.thread] = yes;
    emulator_wait(WAIT_WARP);
    for (int i = first; i < first + WARP; i++) any |= emulator.slot[i] == 1;
    emulator_wait(WAIT_WARP);
    return any;
}

DEVICE uint32_t shuffle_before(uint32_t x, int lane, int lanes) {
    const int first = emulator.thread - lane;
    if (lane < 0 || lane >= lanes || first / WARP != (first + lanes - 1) / WARP) __builtin_trap();
    emulator.slot[emulator.thread] = x;
    emulator_wait_part(first, lanes);
    x = lane > 0 ? (uint32_t)emulator.slot[emulator.thread - 1] : ~x;
    emulator_wait_part(first, lanes);
    return x;
}

/* An address that is not aligned to the access is an error on a device. */
DEVICE void store_words(void *to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const uint32_t words[] = { a, b, c, d };
    if ((uintptr_t)to % sizeof words != 0) __builtin_trap();
    memcpy(to, words, sizeof words);
}
DEVICE void store_words(void *to, uint32_t a, uint32_t b) {
    const uint32_t words[] = { a, b };
    if ((uintptr_t)to % sizeof words != 0) __builtin_trap();
    memcpy(to, words, sizeof words);
}

template <class Bits> DEVICE void keep_address(Bits *&) {}
DEVICE void keep_number(uint32_t &) {}

DEVICE float product(float a, float b) { return a * b; }
DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE void add_product_if(uint32_t word, uint32_t last, float &sum, float a, float b) {
    sum = word <= last ? fused(a, b, sum) : sum;
}
DEVICE void mask_unless(uint32_t word, uint32_t last, uint32_t &x, uint32_t bits) {
    x &= word <= last ? UINT32_MAX : bits;
}
DEVICE float square_root(float x) { return sqrtf(x); }
DEVICE double square_root(double x) { return sqrt(x); }

DEVICE float larger(float a, float b) { return fmaxf(a, b); }
DEVICE float not_negative(float x) { return x < 0 ? -0.0f : x; }

DEVICE uint32_t emulated_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
DEVICE float emulated_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* y, wrong by up to `ulps` units of the last place, which depends on x; subnormals are 0. */
DEVICE float emulated_error(float y, float x, int ulps) {
    if (!(fabsf(y) <= 0x1.fffffep127f)) return y;
    if (fabsf(y) < 0x1p-126f) return copysignf(0, y);
    if (fabsf(y) < 0x1p-125f || fabsf(y) > 0x1p127f) return y;
    return emulated_float(emulated_bits(y) +
                          (uint32_t)(emulated_bits(x) * 2654435761u >> 16) % (uint32_t)(2 * ulps + 1) - (uint32_t)ulps);
}
DEVICE float exp2_approx(float x) { return x == 0 ? 1 : emulated_error(exp2f(x), x, 2); }
DEVICE float reciprocal_root(float x) { return emulated_error(1 / sqrtf(x), x, 2); }
DEVICE float reciprocal(float x) { return fabsf(x) < 0x1p-126f ? copysignf(INFINITY, x) : emulated_error(1 / x, x, 1); }

DEVICE float float_from_f16(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, body = bits & 0x7fff;
    if (body >= 0x7c00) return emulated_float(sign | 0x7f800000u | (body & 0x3ff) << 13);
    return copysignf(emulated_float(body << 13) * 0x1p112f, emulated_float(sign | 0x3f800000u));
}
DEVICE uint16_t f16_from_float(float x) {
    const uint16_t sign = (uint16_t)(emulated_bits(x) >> 16 & 0x8000);
    const float a = fabsf(x);
    if (!(a < 65520.0f)) return (uint16_t)(sign | (a != a ? 0x7e00 : 0x7c00));
    if (a < 0x1p-14f) return (uint16_t)(sign | (emulated_bits(a + 0.5f) - emulated_bits(0.5f)));
    const uint32_t b = emulated_bits(a);
    return (uint16_t)(sign | (((b + 0xfff + (b >> 13 & 1)) >> 13) - (112u << 10)));
}
DEVICE uint16_t bf16_from_float(float x) {
    const uint32_t b = emulated_bits(x);
    return (uint16_t)(x != x ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16);
}
DEVICE uint32_t f16_pair(float low, float high) { return f16_from_float(low) | (uint32_t)f16_from_float(high) << 16; }
DEVICE uint32_t bf16_pair(float low, float high) {
    return bf16_from_float(low) | (uint32_t)bf16_from_float(high) << 16;
}

template <int FRACTION> struct float8_units {
    static constexpr bool THERE = true;
    static constexpr int BIAS = FRACTION == 3 ? 7 : 15, MOST = FRACTION == 3 ? 0x7e : 0x7b;
    static uint16_t f16(uint8_t code) {
        const float sign = code & 0x80 ? -1.0f : 1.0f;
        const int body = code & 0x7f, e = body >> FRACTION, fraction = body & ((1 << FRACTION) - 1);
        if (body > MOST) return f16_from_float(FRACTION == 2 && body == 0x7c ? copysignf(INFINITY, sign) : NAN);
        return f16_from_float(
            copysignf(ldexpf((float)(fraction + (e > 0) * (1 << FRACTION)), (e > 0 ? e : 1) - BIAS - FRACTION), sign));
    }
    static uint8_t code(float x) {
        const float a = fabsf(x);
        if (x != x) return 0x7f;
        const int e = a < ldexpf(1, 1 - BIAS) ? 1 - BIAS : a > 0x1p20f ? 20 : ilogbf(a);
        const int body =
            ((e + BIAS - 1) << FRACTION) + (int)nearbyintf(ldexpf(a > 0x1p20f ? 0x1p20f : a, FRACTION - e));
        return (uint8_t)((body > MOST ? MOST : body) | (signbit(x) ? 0x80 : 0));
    }
    static uint32_t f16_pair(uint16_t codes) {
        return f16((uint8_t)codes) | (uint32_t)f16((uint8_t)(codes >> 8)) << 16;
    }
    static uint16_t pair(float low, float high) { return (uint16_t)(code(low) | code(high) << 8); }
};

#endif
