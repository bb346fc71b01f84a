/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of spec/same.h on devices: what a block of SAME_LANES threads does with a row. */
#ifndef TRINE_SIMT_SAME_H
#define TRINE_SIMT_SAME_H

#include "row.h"
#include "spec/same.h"

/* A number of each thread, down to that of the block. */
template <class Join> DEVICE float same_joined(float mine, const Join &join) {
    SHARED float part[SAME_LANES];
    const int lane = thread_index();
    sync_block(); /* what it was before has been read */
    part[lane] = mine;
    sync_block();
#pragma unroll
    for (int half = SAME_LANES / 2; half > 0; half /= 2) {
        if (lane < half) part[lane] = join(part[lane], part[lane + half]);
        sync_block();
    }
    return part[0];
}
DEVICE float same_total(float mine) {
    return same_joined(mine, [](float a, float b) { return a + b; });
}
/* Numbers, no NaN. */
DEVICE float same_largest(float mine) {
    return same_joined(mine, [](float a, float b) { return b > a ? b : a; });
}

DEVICE float same_term(float p, float x, float c) { return product(p, x) + c; }

DEVICE float same_exp(float x) {
    const float shifted = product(x, SAME_LOG2E) + SAME_ROUNDING, k = shifted - SAME_ROUNDING;
    const uint32_t power = bits_of_float(shifted) - bits_of_float(SAME_ROUNDING);
    float r = x - product(k, SAME_LN2_HIGH), p = 0;
    r = r - product(k, SAME_LN2_LOW);
#define TERM(c) p = same_term(p, r, c);
    SAME_EXP(TERM)
#undef TERM
    p = product(p, product(r, r)) + r + 1.0f;
    return x < SAME_EXP_LEAST ? 0.0f : product(p, float_of_bits((power + 127) << 23));
}

DEVICE float same_log(float x) {
    const uint32_t bits = bits_of_float(x);
    const int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    const float k = (float)e, f = float_of_bits(bits - ((uint32_t)e << 23)) - 1.0f, f2 = product(f, f);
    float p = 0;
#define TERM(c) p = same_term(p, f, c);
    SAME_LOG(TERM)
#undef TERM
    const float low = product(f2, -0.5f) + (product(product(f2, f), p) + product(k, SAME_LN2_LOW));
    return product(k, SAME_LN2_HIGH) + (f + low);
}

/* One of either type. */
template <class T> DEVICE float same_load(const void *data, bool wide, int64_t i) {
    return wide ? load_one<f32>(data, i) : load_one<T>(data, i);
}
template <class T> DEVICE void same_store(void *data, bool wide, int64_t i, float x) {
    if (wide)
        store_one<f32>(data, i, x);
    else
        store_one<T>(data, i, x);
}

#endif
