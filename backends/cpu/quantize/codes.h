/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of 1 to 8 bits in bytes: read into vectors and packed, 16 at a time. */
#ifndef TRINE_CPU_CODES_H
#define TRINE_CPU_CODES_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/float8.h"
#include "backends/cpu/core/order.h"
#include "backends/cpu/core/vec.h"

enum { CODES_UNIT = 16, CODES_VECTORS = CODES_UNIT / VL };

/* 16 codes, a byte each. */
typedef uint64_t code_bytes __attribute__((vector_size(CODES_UNIT)));

/* A word whose fields of `width` bits, 16 or 32, have their lowest `ones` bits set. */
INLINE uint64_t codes_mask(int width, int ones) {
    const uint64_t field = (UINT64_C(1) << ones) - 1;
    return field * (width == 32 ? UINT64_C(0x0000000100000001) : UINT64_C(0x0001000100010001));
}

/* 8 codes that are one behind the other in the low bits, each in a byte of its own, by halves; and back, from the low
 * bits of bytes. Instructions for it (BMI2) take up to hundreds of cycles before Zen 3. */
INLINE uint64_t codes_spread(uint64_t x, int bits) {
    if (bits == 8) return x;
    x = x >> 4 * bits << 32 | (x & ((UINT64_C(1) << 4 * bits) - 1));
    x = (x >> 2 * bits & codes_mask(32, 2 * bits)) << 16 | (x & codes_mask(32, 2 * bits));
    return (x >> bits & codes_mask(16, bits)) << 8 | (x & codes_mask(16, bits));
}
INLINE uint64_t codes_gather(uint64_t x, int bits) {
    if (bits == 8) return x;
    x = (x & codes_mask(16, bits)) | (x >> (8 - bits) & codes_mask(16, bits) << bits);
    x = (x & codes_mask(32, 2 * bits)) | (x >> (16 - 2 * bits) & codes_mask(32, 2 * bits) << 2 * bits);
    const uint64_t half = (UINT64_C(1) << 4 * bits) - 1;
    return (x & half) | (x >> (32 - 4 * bits) & half << 4 * bits);
}

/* The number of 8 bytes in memory, the lowest first; and back. */
INLINE uint64_t codes_word(uint64_t x) { return LITTLE ? x : __builtin_bswap64(x); }

/* The lowest 1 to 8 bytes of a number, in words and not one by one. */
INLINE uint64_t codes_read(const uint8_t *from, int bytes) {
    uint64_t x = 0;
    uint32_t four;
    uint16_t two;
    if (bytes == 8) {
        memcpy(&x, from, sizeof x);
        return codes_word(x);
    }
    if (bytes & 1) x = from[bytes - 1];
    if (bytes & 2) {
        memcpy(&two, from + (bytes & 4), sizeof two);
        x = x << 16 | (LITTLE ? two : __builtin_bswap16(two));
    }
    if (bytes & 4) {
        memcpy(&four, from, sizeof four);
        x = x << 32 | (LITTLE ? four : __builtin_bswap32(four));
    }
    return x;
}
INLINE void codes_write(uint8_t *to, int bytes, uint64_t x) {
    if (bytes == 8) {
        x = codes_word(x);
        memcpy(to, &x, sizeof x);
        return;
    }
    if (bytes & 4) {
        const uint32_t four = LITTLE ? (uint32_t)x : __builtin_bswap32((uint32_t)x);
        memcpy(to, &four, sizeof four);
        x >>= 32;
    }
    if (bytes & 2) {
        const uint16_t two = LITTLE ? (uint16_t)x : __builtin_bswap16((uint16_t)x);
        memcpy(to + (bytes & 4), &two, sizeof two);
        x >>= 16;
    }
    if (bytes & 1) to[bytes - 1] = (uint8_t)x;
}

/* `count` codes, at most 16, that fill whole bytes; what is beyond them is 0. */
INLINE code_bytes codes_load(const uint8_t *from, int count, int bits) {
    const int first = count < 8 ? count : 8;
    return (code_bytes){ codes_word(codes_spread(codes_read(from, first * bits / 8), bits)),
                         count > 8 ? codes_word(codes_spread(codes_read(from + bits, (count - 8) * bits / 8), bits))
                                   : 0 };
}
INLINE void codes_store(uint8_t *to, int count, int bits, code_bytes codes) {
    const int first = count < 8 ? count : 8;
    codes_write(to, first * bits / 8, codes_gather(codes_word(codes[0]), bits));
    if (count > 8) codes_write(to + bits, (count - 8) * bits / 8, codes_gather(codes_word(codes[1]), bits));
}

/* Vector v of them, and all from their vectors. */
INLINE vi codes_widen(code_bytes codes, int v) {
    vb part;
#if VL == 16
    memcpy(&part, &codes, sizeof part);
#elif VL == 8
    memcpy(&part, &(uint64_t){ codes[v] }, sizeof part);
#else
    memcpy(&part, &(uint32_t){ (uint32_t)(codes[v / 2] >> word_place(v % 2, 32, 64)) }, sizeof part);
#endif
    (void)v;
    return vb_widen(part);
}
INLINE code_bytes codes_narrow(const vi code[CODES_VECTORS]) {
    code_bytes codes = { 0 };
#if VL == 16
    const vb part = vb_narrow(code[0]);
    memcpy(&codes, &part, sizeof codes);
#else
    uint64_t half[2] = { 0, 0 };
#pragma GCC unroll 4
    for (int v = 0; v < CODES_VECTORS; v++) {
        const vb part = vb_narrow(code[v]);
#if VL == 8
        memcpy(&half[v], &part, sizeof part);
#else
        uint32_t word;
        memcpy(&word, &part, sizeof word);
        half[v / 2] |= (uint64_t)word << word_place(v % 2, 32, 64);
#endif
    }
    codes = (code_bytes){ half[0], half[1] };
#endif
    return codes;
}

/* Of codes of e2m1: above 0.5 they are floats whose exponents are 126 less. */
INLINE vf codes_from_e2m1(vi code) {
    const vi size = code & 7;
    const vi bits = visel(size > 1, (size << 22) + (126 << 23), visel(size == 1, viset(0x3f000000), viset(0)));
    return (vf)((vu)bits | (vu)(code & 8) << 28);
}

/* A group's bytes and numbers, wherever its tensors have it. */
INLINE char *codes_at(const trine_tensor *t, int64_t i, int64_t g) {
    return (char *)t->data + (i * t->stride[0] + g * t->stride[1]) * (int64_t)trine_dtype_size(t->dtype);
}

/* Added to a number below 2^22 it leaves the nearest whole number in the low bits. */
#define CODES_WHOLE 0x1.8p23f

/* A group's number. */
static inline float codes_number(const trine_tensor *t, int64_t i, int64_t g) {
    const char *at = codes_at(t, i, g);
    return t->dtype == TRINE_F32    ? sload(at, TRINE_F32, 0)
           : t->dtype == TRINE_BF16 ? sload(at, TRINE_BF16, 0)
           : t->dtype == TRINE_F16  ? sload(at, TRINE_F16, 0)
                                    : e8m0_read(*(const uint8_t *)at);
}

/* It rounded to its type, and stored. */
static inline float codes_put_number(const trine_tensor *t, int64_t i, int64_t g, float x, bool saturate) {
    char *at = codes_at(t, i, g);
    const float largest = t->dtype == TRINE_BF16 ? 0x1.fep127f : t->dtype == TRINE_F16 ? 65504.0f : 0x1.fffffep127f;
    if (saturate && x > largest) x = largest;
    if (t->dtype == TRINE_F32)
        sstore(at, TRINE_F32, 0, x);
    else if (t->dtype == TRINE_BF16)
        sstore(at, TRINE_BF16, 0, x);
    else if (t->dtype == TRINE_F16)
        sstore(at, TRINE_F16, 0, x);
    else
        *(uint8_t *)at = e8m0_write(x);
    return codes_number(t, i, g);
}

/* A power of two: the one of `size` less that of `most`, or upward the smallest that is not less than the scale. */
static inline float codes_power(float size, float most, float scale, bool upward) {
    uint32_t bits, less;
    if (scale != scale) return scale;
    memcpy(&bits, upward ? &scale : &size, sizeof bits);
    memcpy(&less, &most, sizeof less);
    const int up = bits > 0x00400000 ? (int)((bits + 0x007fffff) >> 23) : 0,
              field = upward ? up : (int)(bits >> 23) - ((int)(less >> 23) - 127);
    return e8m0_read((uint8_t)(field < 0 ? 0 : field > 254 ? 254 : field));
}

/* Within what a type has of them, which are all of e8m0's but in f16. */
static inline float codes_power_within(float power, trine_dtype type) {
    return type != TRINE_F16 ? power : power < 0x1p-24f ? 0x1p-24f : power > 0x1p15f ? 0x1p15f : power;
}

/* A group's scale stored: rounded, or a power of two. */
static inline float codes_put_scale(const trine_tensor *t, int64_t i, int64_t g, bool powers, float size, float most,
                                    float scale, bool upward) {
    if (powers || t->dtype == TRINE_E8M0) scale = codes_power_within(codes_power(size, most, scale, upward), t->dtype);
    return codes_put_number(t, i, g, scale, true);
}

/* Calls body(..., T, BITS) with constants for the codes of 4 and 8 bits. */
#define CODES_FOR_BITS(bits, body, ...) \
    do { \
        if ((bits) == 4) \
            body(__VA_ARGS__, 4); \
        else if ((bits) == 8) \
            body(__VA_ARGS__, 8); \
        else \
            body(__VA_ARGS__, bits); \
    } while (0)

#endif
