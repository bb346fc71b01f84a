/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of few bits on devices: where groups are, and a unit of codes as one number. */
#ifndef TRINE_SIMT_CODES_INL_H
#define TRINE_SIMT_CODES_INL_H

#include "codes.h"
#include "backends/simt/core/simt.h"

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
    DEVICE float load(const simt_codes &p, const simt_groups &g) const {
        return p.type == CODES_F32    ? load_one<f32>(g.data, in(g))
               : p.type == CODES_BF16 ? load_one<bf16>(g.data, in(g))
                                      : load_one<f16>(g.data, in(g));
    }
    DEVICE void store(const simt_codes &p, const simt_groups &g, float x) const {
        if (p.type == CODES_F32)
            store_one<f32>(g.data, in(g), x);
        else if (p.type == CODES_BF16)
            store_one<bf16>(g.data, in(g), x);
        else
            store_one<f16>(g.data, in(g), x);
    }
};

/* x rounded to the type of the scales. */
DEVICE float code_rounded(const simt_codes &p, float x) {
    return p.type == CODES_F32 ? x : p.type == CODES_BF16 ? rounded<bf16>(x) : rounded<f16>(x);
}

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
