/* SPDX-License-Identifier: Apache-2.0 */
/* The exponential of ops whose choices are the same on every device: the operations that spec/power.h prescribes, none
 * of them fused. */
#ifndef TRINE_SIMT_POWER_H
#define TRINE_SIMT_POWER_H

#include "simt.h"

/* e^t for t <= 0. */
DEVICE float pinned_power(float t) {
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

#endif
