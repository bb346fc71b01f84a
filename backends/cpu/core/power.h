/* SPDX-License-Identifier: Apache-2.0 */
/* The exponential of ops whose choices are the same on every device: the operations that spec/power.h prescribes, none
 * of them fused. */
#ifndef TRINE_CPU_POWER_H
#define TRINE_CPU_POWER_H

#include "vec.h"

/* e^t for t <= 0. */
INLINE vf power(vf t) {
    const vf magic = vset(0x1.8p23f); /* adding it rounds to an integer, which is then in the low bits */
    const vf shifted = vproduct(t, vset(0x1.715476p+0f)) + magic, k = shifted - magic;
    const vf r = (t - vproduct(k, vset(0x1.63p-1f))) - vproduct(k, vset(-2.12194440e-4f));
    vf p = vset(1 / 5040.0f);
    p = vproduct(p, r) + 1 / 720.0f;
    p = vproduct(p, r) + 1 / 120.0f;
    p = vproduct(p, r) + 1 / 24.0f;
    p = vproduct(p, r) + 1 / 6.0f;
    p = vproduct(p, r) + 0.5f;
    p = vproduct(p, r) + 1.0f;
    p = vproduct(p, r) + 1.0f;
    const vf two = (vf)(((vu)shifted << 23) + 0x3f800000u);
    return vsel(t < -80, vzero(), vproduct(p, two));
}

#endif
