/* SPDX-License-Identifier: Apache-2.0 */
/* Two of each four elements on devices: a thread has 8, two groups, whose places are a byte of indices. */
#ifndef TRINE_SIMT_PAIRS24_INL_H
#define TRINE_SIMT_PAIRS24_INL_H

#include "pairs24.h"
#include "backends/simt/core/simt.h"

/* Elements as bits, and numbers that grow with their size; that of NaN is the largest. */
template <class Bits, uint32_t INFINITE, uint32_t NOT_A_NUMBER> struct bits24 {
    using bits = Bits;
    enum : uint32_t { NAN_OF = NOT_A_NUMBER };
    static DEVICE uint32_t key(Bits x) {
        const uint32_t size = (uint32_t)x & (sizeof(Bits) == 4 ? 0x7fffffffu : 0x7fffu);
        return size > INFINITE ? INFINITE + 1 : size;
    }
};
struct bits24_i8 {
    using bits = uint8_t;
    enum : uint32_t { NAN_OF = 0 };
    static DEVICE uint32_t key(uint8_t x) { return x < 128 ? x : 256u - x; }
};
using bits24_f32 = bits24<uint32_t, 0x7f800000u, 0x7fc00000u>;
using bits24_bf16 = bits24<uint16_t, 0x7f80u, 0x7fc0u>;
using bits24_f16 = bits24<uint16_t, 0x7c00u, 0x7e00u>;

/* A group: which are kept, a bit for each, and how many are not 0. */
struct kept24 {
    int set, filled;
};
template <class T> DEVICE kept24 kept24_of(const typename T::bits *group) {
    uint32_t key[4];
    int filled = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        key[i] = T::key(group[i]);
        filled += key[i] != 0;
    }
    int set = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int before = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) before += j < i ? key[j] >= key[i] : j > i ? key[j] > key[i] : 0;
        set |= before < 2 ? 1 << i : 0;
    }
    return { set, filled };
}

/* The places of the two bits of such a set. */
DEVICE int first24(int set) { return set & 1 ? 0 : set & 2 ? 1 : 2; }
DEVICE int second24(int set) { return set & 8 ? 3 : set & 4 ? 2 : 1; }

/* A thread's elements: of which row, and where in it. */
struct place24 {
    int64_t row, at;
    bool there;

    DEVICE explicit place24(const pairs24_params &p) {
        const int64_t unit = block_index() * SIMT_THREADS + thread_index();
        there = unit < p.units;
        row = divides_fast(p.units) ? (int64_t)quotient((uint32_t)unit, p.row_units)
                                    : (int64_t)quotient((uint64_t)unit, p.row_units);
        at = (unit - row * p.row_units.by) * VECTOR;
    }
};

template <class Bits> DEVICE Bits *row24(const simt_rows &rows, int64_t row) {
    return (Bits *)rows.data + row * rows.row;
}

#define ENTRIES24(op) \
    ENTRY(op##_f32, SIMT_THREADS, pairs24_params) { op##_vector<bits24_f32>(p); } \
    ENTRY(op##_bf16, SIMT_THREADS, pairs24_params) { op##_vector<bits24_bf16>(p); } \
    ENTRY(op##_f16, SIMT_THREADS, pairs24_params) { op##_vector<bits24_f16>(p); } \
    ENTRY(op##_i8, SIMT_THREADS, pairs24_params) { op##_vector<bits24_i8>(p); }

#endif
