/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions in float64, for which others have a vendor's library. Errors in units of 2^-53. */
#ifndef TRINE_HIP_FLOAT64_H
#define TRINE_HIP_FLOAT64_H

#include "backends/simt/core/simt.h"

template <int N> DEVICE double polynomial(const double (&coefficient)[N], double x) {
    double sum = coefficient[0];
#pragma unroll
    for (int i = 1; i < N; i++) sum = __builtin_fma(sum, x, coefficient[i]);
    return sum;
}

/* e^x for x <= 0, within 2 of it: x = n ln(2) + r, |r| <= ln(2)/2, and a minimax polynomial of r. */
DEVICE double exp_of(double x) {
    constexpr double POWER[] = { 2.5110079917407737e-08,
                                 2.763269466207279e-07,
                                 2.7557240804190355e-06,
                                 2.4801485333574577e-05,
                                 0.00019841269890154013,
                                 0.0013888888952453789,
                                 0.0083333333333195612,
                                 0.041666666666487572,
                                 0.1666666666666668,
                                 0.50000000000000189,
                                 1,
                                 1 };
    const double bounded = x < -746 ? -746 : x; /* there it is 0 */
    const double n = __builtin_rint(bounded * 1.4426950408889634);
    const double r = __builtin_fma(n, -0x1.d1cf79abc9e3bp-32, __builtin_fma(n, -0x1.62e42fec00000p-1, bounded));
    return __builtin_amdgcn_ldexp(polynomial(POWER, r), (int)n);
}

/* 1/(1 + e^-x), within 5 of it. */
DEVICE double sigmoid(double x) {
    const double e = exp_of(-__builtin_fabs(x)), r = 1 / (1 + e);
    return x < 0 ? e * r : r;
}

/* Phi(x) within 3 of 1, not of itself. Phi(-a) = exp(-a^2/2) g((a - 4)/(a + 4)), g a minimax polynomial for a below
 * 8.5, beyond which the power alone is small. */
DEVICE double normal_cdf(double x) {
    constexpr double G[] = { 1.7953656775809415e-10,  5.8057557433327773e-08,  3.8234246816239292e-07,
                             7.4501624948210557e-07,  -8.4860155472243624e-07, -4.3434759524849188e-06,
                             4.6195671259805904e-06,  2.8652642554936199e-05,  -4.5551901988398067e-05,
                             -0.00018718422484176125, 0.00063881357999944822,  0.00050756204364700401,
                             -0.0084920954707980219,  0.030864804107969587,    -0.071707407337943868,
                             0.12437925533923778,     -0.17039772154845423,    0.094410641301968995 };
    const double a = __builtin_fabs(x) > 40 ? 40 : __builtin_fabs(x);
    const double tail = exp_of(a * a * -0.5) * polynomial(G, (a - 4) / (a + 4));
    return x < 0 ? tail : 1 - tail;
}

#endif
