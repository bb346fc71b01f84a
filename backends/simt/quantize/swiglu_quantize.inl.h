/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_quantize on devices.
 *
 * NOTES. Floor: gate and up once, codes once; what is read again is in the first two levels of caches. No product is
 * fused, so that CPUs without such instructions have the same bits. */
#include "swiglu_quantize.h"
#include "rows.inl.h"

/* e^-|v|; of NaN NaN. */
DEVICE float swiglu_exp(float v) {
    const float a = magnitude(v), z = a > 105 ? -105.0f : -a;
    const float whole = product(z, 1.44269504f) + CODES_WHOLE, n = whole - CODES_WHOLE;
    const float r = (z - product(n, 0x1.63p-1f)) - product(n, -2.12194440e-4f);
    float p = product(r, 1.38186966e-3f) + 8.36871564e-3f;
    p = product(p, r) + 4.16682921e-2f;
    p = product(p, r) + 1.66665211e-1f;
    p = product(p, r) + 4.99999940e-1f;
    p = product(product(r, r), p) + r + 1.0f;
    if (!(a >= 0)) return v;
    const int32_t power = (int32_t)(bits_of_float(whole) - bits_of_float(CODES_WHOLE)), half = power >> 1;
    return product(product(p, float_of_bits((uint32_t)(half + 127) << 23)),
                   float_of_bits((uint32_t)(power - half + 127) << 23));
}

template <class T> struct swiglu_source {
    const swiglu_quantize_params &p;
    int64_t row;

    DEVICE float activated(float x) const {
        const float v = p.gelu ? product(x, product(product(x, x), 7.13548139e-2f) + 1.59576917f) : x;
        const float e = swiglu_exp(v);
        return product(x, (v < 0 ? e : 1.0f) / (1.0f + e));
    }

    DEVICE void get(float (&y)[CODES_UNIT], const lane &l, bool) const {
        using bits = typename T::bits;
        float gate[CODES_UNIT];
        load<T>(gate, (const bits *)p.gate.data + row * p.gate.row, l);
        load<T>(y, (const bits *)p.up.data + row * p.up.row, l);
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) y[j] = product(activated(gate[j]), y[j]);
        if (!p.factor.data) return;
        float factor[CODES_UNIT];
        load<f32>(factor, p.factor.data, l);
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) y[j] = product(y[j], factor[j]);
    }
};

template <class T, int G> DEVICE void swiglu_quantize_group(const swiglu_quantize_params &p) {
    const int64_t item = block_index() * (SIMT_THREADS / G) + thread_index() / G;
    const bool there = item < p.items;
    const int64_t row = there ? item / p.out.groups : 0, group = there ? item - row * p.out.groups : 0;
    row_group<T, G>(p.out, swiglu_source<T>{ p, row }, row, group, there);
}

#define SWIGLU_QUANTIZE_TEAM(T, G) \
    ENTRY(swiglu_quantize_##T##_##G, SIMT_THREADS, swiglu_quantize_params) { swiglu_quantize_group<T, G>(p); }
#define SWIGLU_QUANTIZE(T) SWIGLU_QUANTIZE_TEAM(T, 4) SWIGLU_QUANTIZE_TEAM(T, 16) SWIGLU_QUANTIZE_TEAM(T, 256)
SWIGLU_QUANTIZE(f32)
SWIGLU_QUANTIZE(bf16)
SWIGLU_QUANTIZE(f16)
