/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of few bits on devices: where groups are, and a unit of codes as one number. */
#ifndef TRINE_SIMT_CODES_INL_H
#define TRINE_SIMT_CODES_INL_H

#include "codes.h"
#include "backends/simt/core/float8.h"
#include "backends/simt/core/simt.h"

/* One of a group's numbers. */
DEVICE float code_load(int type, const void *data, int64_t at) {
    return type == CODES_F32    ? load_one<f32>(data, at)
           : type == CODES_BF16 ? load_one<bf16>(data, at)
           : type == CODES_F16  ? load_one<f16>(data, at)
                                : load_one<e8m0>(data, at);
}
DEVICE void code_store(int type, void *data, int64_t at, float x) {
    if (type == CODES_F32)
        store_one<f32>(data, at, x);
    else if (type == CODES_BF16)
        store_one<bf16>(data, at, x);
    else if (type == CODES_F16)
        store_one<f16>(data, at, x);
    else
        store_one<e8m0>(data, at, x);
}

/* A group: its row, and its place in that. */
struct code_group {
    int64_t row, at;
    DEVICE code_group(const simt_codes &p, int64_t item)
        : row(divides_fast(p.items) ? (int64_t)quotient((uint32_t)item, p.groups) : item / p.groups.by),
          at(item - row * p.groups.by) {}
    DEVICE int64_t in(const simt_groups &g) const { return row * g.row + at * g.group; }
    DEVICE uint8_t *bytes(const simt_codes &p) const { return (uint8_t *)p.codes.data + in(p.codes); }
    template <class T> DEVICE typename T::bits *numbers(const simt_codes &p) const {
        return (typename T::bits *)p.x.data + row * p.x.row + at * p.n;
    }
    DEVICE float load(const simt_groups &g, int type) const { return code_load(type, g.data, in(g)); }
    DEVICE void store(const simt_groups &g, int type, float x) const { code_store(type, g.data, in(g), x); }
};

/* x rounded to a type of scales, if it is none of e8m0; a scale to the largest finite value at most. */
DEVICE float code_rounded(int type, float x) {
    return type == CODES_BF16 ? rounded<bf16>(x) : type == CODES_F16 ? rounded<f16>(x) : x;
}
DEVICE float code_scale(int type, float x) {
    const float largest = type == CODES_BF16 ? bf16::largest() : type == CODES_F16 ? f16::largest() : f32::largest();
    return code_rounded(type, x > largest ? largest : x);
}

/* A power of two: the one of `size` less that of `most`, or upward the smallest that is not less than the scale. */
DEVICE float code_power(float size, float most, float scale, bool upward) {
    const uint32_t bits = bits_of_float(upward ? scale : size);
    const int32_t up = bits > 0x00400000u ? (int32_t)((bits + 0x007fffffu) >> 23) : 0,
                  field = upward ? up : (int32_t)(bits >> 23) - ((int32_t)(bits_of_float(most) >> 23) - 127);
    return e8m0::get((uint8_t)(field < 0 ? 0 : field > 254 ? 254 : field));
}

/* Within what a type has of them, which are all of e8m0's but in f16. */
DEVICE float code_power_within(int type, float power) {
    return type != CODES_F16 ? power : power < 0x1p-24f ? 0x1p-24f : power > 0x1p15f ? 0x1p15f : power;
}

/* A group's scale as its type has it: rounded, or a power of two. */
DEVICE float code_group_scale(int type, bool powers, float size, float most, float scale, bool upward) {
    return powers || type == CODES_E8M0 ? code_power_within(type, code_power(size, most, scale, upward))
                                        : code_scale(type, scale);
}

DEVICE float code_clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* 1.5 2^23: added to a number below 2^22 it leaves the nearest whole number in the low bits. */
#define CODES_WHOLE 12582912.0f

/* x / by, correctly rounded. Where nothing leaves the range of normal numbers, by two corrections with a reciprocal
 * that is correctly rounded itself (Markstein 1990, theorem 8.4). */
struct code_divisor {
    float by, reciprocal;
    bool plain;
    DEVICE explicit code_divisor(float x) : by(x), reciprocal(1.0f / x), plain(x >= 0x1p-60f && x <= 0x1p60f) {}
    DEVICE float of(float x) const {
        if (!plain) return by > 0 ? x / by : 0.0f;
        const float rough = product(x, reciprocal), near = fused(fused(-rough, by, x), reciprocal, rough);
        return fused(fused(-near, by, x), reciprocal, near);
    }
};

/* Of a group's codes the unit from code `at` on, a multiple of 8, which is `count` codes: the first is lowest. */
DEVICE uint64_t codes_load(const simt_codes &p, const uint8_t *group, int64_t at, int count) {
    const uint8_t *from = group + at / CODES_UNIT * p.bits;
    if (p.words && count == CODES_UNIT) {
        if (p.bits == 4) return *(const uint32_t *)from;
        const packed<uint32_t, 2> both = *(const packed<uint32_t, 2> *)from;
        return both.v[0] | (uint64_t)both.v[1] << 32;
    }
    uint64_t word = 0;
    for (int b = 0; b < count * p.bits / 8; b++) word |= (uint64_t)from[b] << 8 * b;
    return word;
}
DEVICE void codes_store(const simt_codes &p, uint8_t *group, int64_t at, int count, uint64_t word) {
    uint8_t *to = group + at / CODES_UNIT * p.bits;
    if (p.words && count == CODES_UNIT) {
        if (p.bits == 4)
            *(uint32_t *)to = (uint32_t)word;
        else
            store_words(to, (uint32_t)word, (uint32_t)(word >> 32));
        return;
    }
    for (int b = 0; b < count * p.bits / 8; b++) to[b] = (uint8_t)(word >> 8 * b);
}

/* Above 0.5 codes of e2m1 are floats whose exponents are 126 less. */
DEVICE float code_e2m1(uint32_t code) {
    const uint32_t size = code & 7;
    const uint32_t bits = size > 1 ? (size << 22) + (126u << 23) : size * 0x3f000000u;
    return float_of_bits(bits | (code & 8) << 28);
}

/* How many codes of a group of n the unit from `at` on has. */
DEVICE int codes_count(int64_t n, int64_t at) { return n - at < CODES_UNIT ? (int)(n - at) : CODES_UNIT; }

#endif
