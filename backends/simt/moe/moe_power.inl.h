/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_route and its gradient make scores of on devices: the operations that spec/moe/moe_route.c prescribes. */
#ifndef TRINE_SIMT_MOE_POWER_INL_H
#define TRINE_SIMT_MOE_POWER_INL_H

#include "moe_route.h"
#include "backends/simt/core/simt.h"

/* Larger for larger x: those of -0 and 0 are equal, and NaN's is the largest; 0 is nobody's. */
DEVICE uint32_t route_order(float x) {
    uint32_t bits = bits_of_float(x);
    if (bits << 1 == 0) bits = 0;
    const uint32_t order = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (bits & 0x7fffffffu) > INF_BITS ? ~0u : order;
}

/* e^t for t <= 0. */
DEVICE float route_power(float t) {
    const float magic = 0x1.8p23f, shifted = product(t, 0x1.715476p+0f) + magic, k = shifted - magic;
    const float r = (t - product(k, 0x1.63p-1f)) - product(k, -2.12194440e-4f);
    float p = 1 / 5040.0f;
    p = product(p, r) + 1 / 720.0f;
    p = product(p, r) + 1 / 120.0f;
    p = product(p, r) + 1 / 24.0f;
    p = product(p, r) + 1 / 6.0f;
    p = product(p, r) + 0.5f;
    p = product(p, r) + 1.0f;
    p = product(p, r) + 1.0f;
    const float two = float_of_bits((bits_of_float(shifted) << 23) + 0x3f800000u);
    return t < -80.0f ? 0.0f : product(p, two);
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
