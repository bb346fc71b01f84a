/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_quantized on devices: a thread has an element of each block of 256, whose largest values all of them find
 * together. */
#include "adamw_quantized.h"
#include "adamw_told.inl.h"
#include "by_chance.inl.h"
#include "spec/places/adamw_quantized.h"

/* Words from one place to another, by all threads of a block. */
template <class Value> DEVICE void quantized_copy(Value &to, const Value &from) {
    static_assert(sizeof(Value) % 4 == 0, "whole words");
    for (int i = thread_index(); i < (int)(sizeof(Value) / 4); i += SIMT_THREADS)
        ((uint32_t *)&to)[i] = ((const uint32_t *)&from)[i];
}

ENTRY(adamw_quantized_begin, SIMT_THREADS, adamw_quantized_begin_params) {
    if (thread_index() == 0) *p.told.scalars = adamw_scalars_told(p.told);
    quantized_copy(p.shared->codes, p.codes);
}

/* The larger ones; NaN if one is. */
struct quantized_larger {
    static DEVICE float one(float a, float b) { return a != a || a >= b ? a : b; }
    DEVICE two operator()(two x, two y) const { return { one(x.a, y.a), one(x.b, y.b) }; }
};

/* How many of the 2^BITS - 1 middles are less than x. */
template <int BITS> DEVICE int quantized_below(float x, const float *middle) {
    int below = 0;
#pragma unroll
    for (int step = 1 << (BITS - 1); step > 0; step /= 2) below += x > middle[below + step - 1] ? step : 0;
    return below;
}

DEVICE float quantized_value(const dynamic_codes &c, int code) {
    const float value = c.positive[code < DYNAMIC_ZERO ? DYNAMIC_ZERO - code : code - DYNAMIC_ZERO];
    return code < DYNAMIC_ZERO ? -value : value;
}
DEVICE uint8_t quantized_m(const dynamic_codes &c, float m, float most) {
    if (!(most > 0 && most < infinity())) return DYNAMIC_ZERO;
    const float x = magnitude(m) / most;
    const int k = quantized_below<7>(x, c.positive_middle);
    if (m < 0) return (uint8_t)(DYNAMIC_ZERO - k);
    return (uint8_t)(DYNAMIC_ZERO + k + (k == 127 && x > c.positive_middle[127] ? 1 : 0));
}
DEVICE uint8_t quantized_v(const dynamic_codes &c, float v, float most) {
    return most > 0 && most < infinity() ? (uint8_t)quantized_below<8>(v / most, c.middle) : (uint8_t)0;
}

DEVICE void quantized_put_copy(const adamw_quantized_params &p, int64_t i, float param) {
    if (!p.copy) return;
    if (p.copy_bf16)
        store_one<bf16>(p.copy, i, param);
    else
        store_one<f16>(p.copy, i, param);
}

/* The block's element `i`; all threads come here. Each operation on moments is rounded. */
template <class T, class G>
DEVICE void quantized_step(const adamw_quantized_params &p, const adamw_quantized_shared &shared, int64_t i) {
    const int64_t block = i / DYNAMIC_BLOCK;
    const bool there = i < p.n;
    float m = 0, v = 0;
    if (there) {
        const float param = load_one<T>(p.param, i), scale = p.grad_scale ? *p.grad_scale : 1.0f;
        const float g = product(load_one<G>(p.grad, i), scale);
        m = product(quantized_value(shared.codes, p.m[i]), p.m_most[block]);
        v = product(shared.codes.value[p.v[i]], p.v_most[block]);
        m = product(p.beta1, m) + product(p.rest1, g);
        v = product(p.beta2, v) + product(p.rest2, product(g, g));
        const adamw_scalars &s = shared.scalars;
        const float denominator = fused(square_root(v), s.inverse_root, p.eps);
        float after[1] = { fused(-s.rate, m / denominator, fused(-s.decay, param, param)) };
        quantized_put_copy(p, i, after[0]);
        by_chance_param<T>(after, p.chances, (uint64_t)i);
        store_one<T>(p.param, i, after[0]);
    }
    const two most = group_combine<SIMT_THREADS>(two{ magnitude(m), v }, quantized_larger());
    const float v_most = most.b < 0 ? 0.0f : most.b;
    if (!there) return;
    p.m[i] = quantized_m(shared.codes, m, most.a);
    p.v[i] = quantized_v(shared.codes, v, v_most);
    if (thread_index() == 0) {
        p.m_most[block] = most.a;
        p.v_most[block] = v_most;
    }
}

template <class T, class G> DEVICE void adamw_quantized(const adamw_quantized_params &p) {
    SHARED adamw_quantized_shared shared;
    const int64_t first = block_index() * (QUANTIZED_RUN * DYNAMIC_BLOCK) + thread_index();
    const bool skips = p.found_inf && *p.found_inf != 0;
    quantized_copy(shared, *p.shared);
    sync_block();
    for (int64_t i = first; i - thread_index() < p.n && i < first + QUANTIZED_RUN * DYNAMIC_BLOCK; i += DYNAMIC_BLOCK) {
        if (!skips)
            quantized_step<T, G>(p, shared, i);
        else if (i < p.n)
            quantized_put_copy(p, i, load_one<T>(p.param, i));
    }
}

#define QUANTIZED(T, G) \
    ENTRY(adamw_quantized_##T##_##G, SIMT_THREADS, adamw_quantized_params) { adamw_quantized<T, G>(p); }
QUANTIZED(f32, f32)
QUANTIZED(f32, bf16)
QUANTIZED(f32, f16)
QUANTIZED(bf16, f32)
QUANTIZED(bf16, bf16)
QUANTIZED(bf16, f16)
QUANTIZED(f16, f32)
QUANTIZED(f16, bf16)
QUANTIZED(f16, f16)
