/* SPDX-License-Identifier: Apache-2.0 */
/* Floats as numbers that compare like them, on devices. */
#ifndef TRINE_SIMT_ORDER_H
#define TRINE_SIMT_ORDER_H

#include "backends/simt/core/simt.h"

/* Larger numbers for larger elements, or for smaller ones: those of -0 and 0 are equal, and NaN's is the largest. */
DEVICE uint32_t order_of(float x, bool smallest) {
    uint32_t bits = bits_of_float(x);
    if (bits << 1 == 0) bits = 0;
    const uint32_t order = bits >> 31 ? ~bits : bits | 0x80000000u;
    return ((bits & 0x7fffffffu) > 0x7f800000u ? ~0u : order) ^ (smallest ? ~0u : 0u);
}

#endif
