/* SPDX-License-Identifier: Apache-2.0 */
/* Element types of caches of keys and values: besides floats those of 8 bits. */
#ifndef TRINE_SIMT_CACHE_TYPES_H
#define TRINE_SIMT_CACHE_TYPES_H

#include "backends/simt/core/float8.h"

struct i8 {
    using bits = uint8_t;
    static DEVICE float get(bits b) { return (float)(int8_t)b; }
    /* To nearest even, saturating; NaN is 0. */
    static DEVICE bits put(float x) {
        const float most = x != x ? 0.0f : x < -128.0f ? -128.0f : x > 127.0f ? 127.0f : x;
        return (bits)(bits_of_float(most + 0x1.8p23f) - bits_of_float(0x1.8p23f));
    }
};

template <class C> DEVICE typename C::bits cache_put(float x, C) { return C::put(x); }
DEVICE uint8_t cache_put(float x, e4m3) { return e4m3::put(x, true); }

/* Eight elements as they are in a cache, and as floats. */
template <class C> using cache_unit = packed<typename C::bits, VECTOR>;
template <class C> DEVICE void cache_get(float (&x)[VECTOR], const cache_unit<C> &raw, C) {
#pragma unroll
    for (int k = 0; k < VECTOR; k++) x[k] = C::get(raw.v[k]);
}
DEVICE void cache_get(float (&x)[VECTOR], const cache_unit<e4m3> &raw, e4m3) {
#pragma unroll
    for (int k = 0; k < VECTOR; k += 2) e4m3::get_pair(x[k], x[k + 1], (uint16_t)(raw.v[k] | raw.v[k + 1] << 8));
}

#endif
