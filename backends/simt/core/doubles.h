/* SPDX-License-Identifier: Apache-2.0 */
/* Doubles, as functions in float64 ask for them that are written once for CPUs and devices (spec/special/bessel.h,
 * spec/chain/functions.h). */
#ifndef TRINE_SIMT_DOUBLES_H
#define TRINE_SIMT_DOUBLES_H

#include "f64.h"

#define FUNCTION DEVICE

typedef double number;
typedef bool mask;

DEVICE number constant(double x) { return x; }
DEVICE number pick(mask m, number a, number b) { return m ? a : b; }
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
DEVICE number power_below(number x) { return double_of_bits(bits_of_double(x) & 0x7ff0000000000000u); }
DEVICE number with_sign(number x, number of) {
    const uint64_t sign = 0x8000000000000000u;
    return double_of_bits((bits_of_double(x) & ~sign) | (bits_of_double(of) & sign));
}

#endif
