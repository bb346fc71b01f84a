/* SPDX-License-Identifier: Apache-2.0 */
/* What gated_threshold compares, by the operations that spec/sparse/gated_threshold.c prescribes: none is fused. */
#ifndef TRINE_CPU_GATE_H
#define TRINE_CPU_GATE_H

#include <trine/matmul.h>

#include "backends/cpu/core/power.h"

INLINE vf gate_logistic(vf v) {
    const vf p = power(-vabs(v));
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
    const vf tail = vproduct(power(vproduct(a, a) * -0.5f), p / q);
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
