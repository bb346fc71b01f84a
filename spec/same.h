/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels compute that give the same bits on every device and at every level of the CPU (TRINE_QUEUE_REPRODUCIBLE),
 * NaN's own bits aside. All arithmetic is IEEE 754's, to nearest even, with subnormals; a product is rounded before it
 * is added to anything, but in f64, where each multiply-add is fused.
 *
 * Sum of terms 0 to n-1, of a row: lane i % SAME_LANES adds term i, in order, to 0; then lane l adds lane l + 32, those
 * below 16 add l + 16, and so on down to one.
 * Dot product of short rows, q k of attention: the same with SAME_DOT_LANES.
 * Chain, of a product's k, of rows that are added up, of attention's keys: SAME_CHAIN terms one after the other, from
 * 0; then those sums one after the other, from 0.
 * exp(x) of x <= 0: 0 below SAME_EXP_LEAST; else 2^k p(r), k = x log2(e) to the nearest integer, r = x - k ln 2 in two
 * steps, p by Horner's rule. log(x) of x >= 1: k ln 2 + q(f), x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).
 * Quotients and square roots are those of IEEE 754. */
#ifndef TRINE_SPEC_SAME_H
#define TRINE_SPEC_SAME_H

enum { SAME_LANES = 64, SAME_DOT_LANES = 16, SAME_CHAIN = 256 };

#define SAME_EXP_LEAST (-87.33f)
#define SAME_LOG2E 1.44269504f
#define SAME_LN2_HIGH 0x1.63p-1f
#define SAME_LN2_LOW (-2.12194440e-4f)
#define SAME_ROUNDING 12582912.0f /* 1.5 2^23: added, it leaves an integer in the low bits */
/* clang-format off */
/* exp(r) = 1 + r + r^2 (...), from the highest power (S. Moshier, Cephes) */
#define SAME_EXP(TERM) \
    TERM(1.9875691500e-4f) TERM(1.3981999507e-3f) TERM(8.3334519073e-3f) \
    TERM(4.1665795894e-2f) TERM(1.6666665459e-1f) TERM(5.0000001201e-1f)
/* log(1 + f) = f - f^2/2 + f^3 (...) */
#define SAME_LOG(TERM) \
    TERM(6.74926788e-2f) TERM(-1.16700977e-1f) TERM(1.18835486e-1f) \
    TERM(-1.24062337e-1f) TERM(1.42203584e-1f) TERM(-1.66679889e-1f) \
    TERM(2.00020716e-1f) TERM(-2.50000089e-1f) TERM(3.33333135e-1f)
/* clang-format on */

#endif
