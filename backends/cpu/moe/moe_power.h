/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of moe_route and of its gradient make scores of: the operations that spec/moe/moe_route.c
 * prescribes. */
#ifndef TRINE_CPU_MOE_POWER_H
#define TRINE_CPU_MOE_POWER_H

#include "backends/cpu/core/power.h"

enum { LANES = 32 }; /* partial sums of a softmax; rows are padded to so many */

INLINE vf row_vector(const void *row, trine_dtype T, int64_t i, int64_t e, float fill) {
    if (i + VL <= e) return vload(row, T, i);
    return i < e ? vloadn(row, T, i, (int)(e - i), fill) : vset(fill);
}

INLINE void put_vector(void *to, trine_dtype T, int64_t i, int64_t e, vf x) {
    if (i + VL <= e)
        vstore(to, T, i, x);
    else if (i < e)
        vstoren(to, T, i, (int)(e - i), x);
}

/* The largest, NaN before all; NaN for an infinite one. */
INLINE float origin_of(const void *row, int64_t e, trine_dtype T) {
    vf most = vset(-INFINITY);
    vi nan = { 0 };
    for (int64_t i = 0; i < e; i += VL) {
        const vf x = row_vector(row, T, i, e, -INFINITY);
        nan |= x != x;
        most = vmax(x, most);
    }
    const float top = vhmax(most);
    return vany(nan) ? NAN : top + (top - top);
}

/* The sum of all partial sums, the upper half added to the lower one until one is left. */
INLINE float total_of(const vf *sum) {
    float partial[LANES];
    memcpy(partial, sum, sizeof partial);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) partial[i] += partial[i + half];
    return partial[0];
}

#endif
