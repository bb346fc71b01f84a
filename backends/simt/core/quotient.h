/* SPDX-License-Identifier: Apache-2.0 */
/* Division of 64-bit integers that are mostly short: one by another is some hundred instructions. */
#ifndef TRINE_SIMT_QUOTIENT_H
#define TRINE_SIMT_QUOTIENT_H

#include "simt.h"

/* n / d, by a product if the numbers below `count`, of which n is one, are short. */
DEVICE int64_t quotient_below(int64_t count, int64_t n, const simt_divisor &d) {
    return divides_fast(count) ? (int64_t)quotient((uint32_t)n, d) : n / d.by;
}

/* a / b rounded down, b > 0; 64 bits only where those are needed. */
DEVICE int64_t floor_quotient(int64_t a, int64_t b) {
    if (((uint64_t)a | (uint64_t)b) >> 32 == 0) return (int64_t)((uint32_t)a / (uint32_t)b);
    return a / b - (a % b < 0 ? 1 : 0);
}

#endif
