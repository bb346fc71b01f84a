/* SPDX-License-Identifier: Apache-2.0 */
/* Powers in float64 on devices, whose libraries are not there. */
#ifndef TRINE_SIMT_POWER64_INL_H
#define TRINE_SIMT_POWER64_INL_H

#include "backends/simt/core/simt.h"

DEVICE double double_of_bits(uint64_t bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* ln x for a normal x > 0: x = 2^k m with m from about 0.7 to 1.4, and 11 terms of 2 artanh((m-1)/(m+1)). */
DEVICE double log_of_double(double x) {
    uint64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    const int32_t k = (int32_t)((int64_t)(bits - 0x3fe6a09e00000000u) >> 52);
    const double m = double_of_bits(bits - ((uint64_t)(int64_t)k << 52)), s = (m - 1) / (m + 1);
    double sum = 0;
#pragma unroll
    for (int i = 21; i > 0; i -= 2) sum = sum * (s * s) + 1.0 / i;
    return (double)k * 0.6931471805599453 + 2 * s * sum;
}

/* e^x for -700 < x <= 0: 2^k times 14 terms of the series. */
DEVICE double exp_of_double(double x) {
    const double magic = 0x1.8p52, shifted = x * 1.4426950408889634 + magic, k = shifted - magic, /* a whole number */
        rest = x - k * 0.6931471805599453;
    uint64_t bits;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    double sum = 1;
#pragma unroll
    for (int i = 14; i > 0; i--) sum = 1 + rest * (1.0 / i) * sum;
    return sum * double_of_bits((bits + 1023) << 52);
}

/* x^y for x >= 1 and y <= 0, to 2^-43; 0 below 2^-1000. */
DEVICE double power_of_double(double x, double y) {
    const double exponent = y * log_of_double(x);
    return exponent < -690 ? 0 : exp_of_double(exponent);
}

#endif
