/* SPDX-License-Identifier: Apache-2.0 */
/* What gated_threshold compares, by the operations that spec/sparse/gated_threshold.c prescribes: none is fused. */
#ifndef TRINE_CPU_GATE_H
#define TRINE_CPU_GATE_H

#include <trine/matmul.h>

#include "backends/cpu/core/vec.h"

/* e^t for t <= 0. */
INLINE vf gate_power(vf t) {
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

INLINE vf gate_logistic(vf v) {
    const vf p = gate_power(-vabs(v));
    return vsel(v < vzero(), p, vset(1)) / (1.0f + p);
}

INLINE vf gate_gelu_erf(vf x) {
    const vf size = vabs(x), a = vsel(size > 14.6f, vset(14.6f), size);
    vf p = vset(0.0139801381f);
    p = vproduct(p, a) + 0.106339224f;
    p = vproduct(p, a) + 0.338643521f;
    p = vproduct(p, a) + 0.49999997f;
    vf q = vset(0.0350565426f);
    q = vproduct(q, a) + 0.266118973f;
    q = vproduct(q, a) + 0.889719844f;
    q = vproduct(q, a) + 1.47516918f;
    q = vproduct(q, a) + 1.0f;
    const vf tail = vproduct(gate_power(vproduct(a, a) * -0.5f), p / q);
    return vproduct(x, vsel(x < vzero(), tail, 1.0f - tail));
}

INLINE vf gate_of(int32_t activation, vf x) {
    switch (activation) {
    case TRINE_ACTIVATION_RELU: return vsel(x < vzero(), vzero(), x);
    case TRINE_ACTIVATION_GELU_TANH:
        return vproduct(x,
                        gate_logistic(vproduct(x, vproduct(vproduct(x, x), vset(0.0713548139f)) + vset(1.59576917f))));
    case TRINE_ACTIVATION_GELU_ERF: return gate_gelu_erf(x);
    case TRINE_ACTIVATION_SILU: return vproduct(x, gate_logistic(x));
    default: return x;
    }
}

#endif
