/* SPDX-License-Identifier: Apache-2.0 */
/* Bessel functions on devices, and the walk of ops made of them. A thread has one element at a time: of several at once
 * registers would not hold the sums. */
#ifndef TRINE_SIMT_SPECIAL_H
#define TRINE_SIMT_SPECIAL_H

#include <trine/special.h>

#include "backends/simt/core/walk.h"

#define FUNCTION DEVICE

typedef double number;
typedef bool mask;

struct f64 {
    using bits = double;
    static DEVICE double get(double x) { return x; }
    static DEVICE double put(double x) { return x; }
};

DEVICE number constant(double x) { return x; }
DEVICE number pick(mask m, number a, number b) { return m ? a : b; }
DEVICE bool any_of(mask m) { return m; }
DEVICE number fused(number a, number b, number c) { return __builtin_fma(a, b, c); }
DEVICE number root(number x) { return square_root(x); }

DEVICE uint64_t bits_of_double(double x) {
    uint64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
DEVICE double double_of_bits(uint64_t bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

#define SQRT_HALF 0x3fe6a09e667f3bcdu
#define ABOVE_SQRT_HALF (0x3ff0000000000000u - SQRT_HALF)
DEVICE number exponent_of(number x) { return (double)((int32_t)((bits_of_double(x) + ABOVE_SQRT_HALF) >> 52) - 1023); }
DEVICE number with_exponent(number x) {
    return double_of_bits(((bits_of_double(x) + ABOVE_SQRT_HALF) & 0xfffffffffffffu) + SQRT_HALF);
}
DEVICE number two_to_power(number x, number shifted) {
    return double_of_bits(bits_of_double(x) + (bits_of_double(shifted) << 52));
}

#include "spec/special/bessel.h"

template <class T> DEVICE double element(const simt_walk &w, int tensor, const unit &u) {
    return T::get(*unit_place<1, typename T::bits>(w, tensor, u));
}
template <class T> DEVICE void put_element(const simt_walk &w, int tensor, const unit &u, double y) {
    *unit_place<1, typename T::bits>(w, tensor, u) = T::put(y);
}

/* Op::step(params, unit) on each element of the thread's unit. */
template <class Op, class Params> DEVICE void walk_singly(const Params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.walk.units) return;
    unit u = unit_of(p.walk, number, p.walk.length);
    const int64_t end = u.at + p.walk.length < p.walk.n ? u.at + p.walk.length : p.walk.n;
#pragma unroll 1
    for (; u.at < end; u.at++) Op::step(p, u);
}

#define SPECIAL_ENTRIES(op) \
    ENTRY(op##_f64, SIMT_THREADS, walk_call<trine_##op##_args>) { walk_singly<op##_op<f64>>(p); } \
    ENTRY(op##_f32, SIMT_THREADS, walk_call<trine_##op##_args>) { walk_singly<op##_op<f32>>(p); }

#endif
