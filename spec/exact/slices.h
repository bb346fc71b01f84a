/* SPDX-License-Identifier: Apache-2.0 */
/* The digits of int_matmul_exact, as its reference and all kernels compute them; the includer defines SLICES_INLINE.
 * Every step is exact but for the roundings that the op's definition has, so that bits are the same everywhere. */
#ifndef TRINE_SPEC_SLICES_H
#define TRINE_SPEC_SLICES_H

enum {
    SLICES_MOST = 16,
    SLICES_FIRST = 6,       /* bits of the first digit */
    SLICES_EACH = 7,        /* of each further one */
    SLICES_STRAY = 1 << 20, /* the exponent of a line with NaN or Inf */
    SLICES_CHUNK = 1 << 18  /* products of digits that 32 bits hold the sum of */
};

/* 2^e, of a normal number. */
SLICES_INLINE double slices_power(int e) {
    union {
        unsigned long long bits;
        double value;
    } x = { (unsigned long long)(e + 1023) << 52 };
    return x.value;
}

/* The biased exponent of a double. */
SLICES_INLINE int slices_field(double x) {
    union {
        double value;
        unsigned long long bits;
    } y = { x };
    return (int)(y.bits >> 52 & 0x7ff);
}

/* The least E with |x| < 2^E; 0 for 0, SLICES_STRAY for NaN and Inf. */
SLICES_INLINE int slices_exponent(double x) {
    const int field = slices_field(x);
    if (field == 0x7ff) return SLICES_STRAY;
    if (x == 0) return 0;
    return field > 0 ? field - 1022 : slices_field(x * slices_power(200)) - 1222;
}

/* x 2^-E as digits are taken of it: bits that are lost below 2^-1074 are in none. */
SLICES_INLINE double slices_begin(double x, int exponent) {
    const int half = -exponent / 2;
    return x * slices_power(half) * slices_power(-exponent - half) * slices_power(SLICES_FIRST);
}

/* The next digit; what is left of *x is made ready for the one behind it. */
SLICES_INLINE int slices_next(double *x) {
    const double digit = __builtin_rint(*x);
    *x = (*x - digit) * slices_power(SLICES_EACH);
    return (int)digit;
}

/* A term less significant than those that follow has been added up: one more. */
SLICES_INLINE double slices_add(double sum, long long term) { return sum * slices_power(-SLICES_EACH) + (double)term; }

/* sum 2^exponent, rounded once: |sum| is 0 or from 2^-112 to 2^60, exponents of both lines and -12. */
SLICES_INLINE double slices_scale(double sum, int exponent) {
    while (exponent > 1000) sum *= slices_power(1000), exponent -= 1000;
    if (exponent >= -900) return sum * slices_power(exponent);
    sum *= slices_power(-900);
    exponent += 900;
    while (exponent < -1000) sum *= slices_power(-1000), exponent += 1000;
    return sum * slices_power(exponent);
}

#endif
