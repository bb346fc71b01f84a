/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_route and its gradient make scores of on devices: the operations that spec/moe/moe_route.c prescribes. */
#ifndef TRINE_SIMT_MOE_POWER_INL_H
#define TRINE_SIMT_MOE_POWER_INL_H

#include "moe_route.h"
#include "backends/simt/core/power.h"

/* Larger for larger x: those of -0 and 0 are equal, and NaN's is the largest; 0 is nobody's. */
DEVICE uint32_t route_order(float x) {
    uint32_t bits = bits_of_float(x);
    if (bits << 1 == 0) bits = 0;
    const uint32_t order = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (bits & 0x7fffffffu) > INF_BITS ? ~0u : order;
}

struct later_order {
    DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

/* A type costs a branch here, and would cost all the code again as a template's argument. */
DEVICE float route_logit(const void *logits, int32_t type, int64_t i) {
    return type == ROUTE_F32    ? load_one<f32>(logits, i)
           : type == ROUTE_BF16 ? load_one<bf16>(logits, i)
                                : load_one<f16>(logits, i);
}

/* What the exponents of a softmax are differences to: the largest, by its order; NaN for an infinite one. */
DEVICE float route_origin(uint32_t top) {
    const float most = float_of_bits(top >> 31 ? top & 0x7fffffffu : ~top);
    return most + (most - most);
}

#endif
