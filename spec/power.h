/* SPDX-License-Identifier: Apache-2.0 */
/* An exponential that is the same on every device, for ops that choose by it: each operation is rounded to f32, none is
 * fused to another. Its formula and its bound: spec/moe/moe_route.c. */
#ifndef TRINE_SPEC_POWER_H
#define TRINE_SPEC_POWER_H

#include <math.h>

static inline float once(float x) {
    volatile float rounded = x; /* lest it be fused to what follows */
    return rounded;
}

/* e^t for t <= 0. */
static inline float power(float t) {
    static const float series[] = { 1 / 5040.0f, 1 / 720.0f, 1 / 120.0f, 1 / 24.0f, 1 / 6.0f, 0.5f, 1, 1 };
    if (t < -80) return 0;
    if (isnan(t)) return t;
    const float shifted = once(once(t * 0x1.715476p+0f) + 0x1.8p23f), k = shifted - 0x1.8p23f;
    const float r = once(t - once(k * 0x1.63p-1f)) - once(k * -2.12194440e-4f);
    float p = series[0];
    for (int i = 1; i < 8; i++) p = once(once(p * r) + series[i]);
    return ldexpf(p, (int)k);
}

#endif
