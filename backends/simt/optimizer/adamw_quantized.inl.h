/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_quantized on devices: 32 threads have a block of 256 elements in registers, of which they find the largest
 * together; codes by straight lines. */
#include "adamw_quantized.h"

#include <root.h>

#include "adamw_told.inl.h"
#include "by_chance.inl.h"
#include "spec/places/adamw_quantized.h"

/* Words from one place to another, by all threads of a block. */
template <class Value> DEVICE void quantized_copy(Value &to, const Value &from) {
    static_assert(sizeof(Value) % 4 == 0, "whole words");
    for (int i = thread_index(); i < (int)(sizeof(Value) / 4); i += SIMT_THREADS)
        ((uint32_t *)&to)[i] = ((const uint32_t *)&from)[i];
}

/* A thread's entry of a table of 256. */
DEVICE float quantized_signed(const dynamic_codes &c, int code) {
    const float value = c.positive[code < DYNAMIC_ZERO ? DYNAMIC_ZERO - code : code - DYNAMIC_ZERO];
    return code < DYNAMIC_ZERO ? -value : value;
}
DEVICE dynamic_turns quantized_turns(const dynamic_lines &d, uint32_t exponent) {
    uint32_t before = 0, here[2] = {}, count = 0;
#pragma unroll
    for (uint32_t turn : d.turn) {
        before += turn >> 23 < exponent ? 1 : 0;
        if (turn >> 23 == exponent) here[count++ > 0] = turn;
    }
    const uint32_t none = (exponent + 1) << 23, line = before * sizeof(dynamic_line);
    return { (count > 0 ? here[0] : none) + line, count > 1 ? here[1] : none };
}

ENTRY(adamw_quantized_begin, SIMT_THREADS, adamw_quantized_begin_params) {
    const int i = thread_index();
    quantized_codes &codes = p.shared->codes;
    codes.m_value[i] = quantized_signed(p.codes, i);
    codes.v_value[i] = p.codes.value[i];
    codes.v_middle[i] = i < DYNAMIC_UNSIGNED - 1 ? p.codes.middle[i] : 1.0f;
    if (i < DYNAMIC_EXPONENTS) {
        codes.m_middle[i] = p.codes.positive_middle[i];
        codes.m_turns[i] = quantized_turns(p.m_lines, (uint32_t)i);
        codes.v_turns[i] = quantized_turns(p.v_lines, (uint32_t)i);
    }
    if (i < DYNAMIC_LINES) {
        codes.m_line[i] = p.m_lines.line[i];
        codes.v_line[i] = p.v_lines.line[i];
    }
    if (i == 0) {
        const adamw_scalars s = adamw_scalars_told(p.told);
        p.shared->scalars = { s.decay, s.rate * p.unit, s.inverse_root * p.unit };
    }
}

/* ------------------------------------------------------------------------------------------------------------ codes */

/* How many of the 2^BITS - 1 middles are less than x. */
template <int BITS> DEVICE int quantized_below(float x, const float *middle) {
    int below = 0;
#pragma unroll 1
    for (int step = 1 << (BITS - 1); step > 0; step /= 2) below += x > middle[below + step - 1] ? step : 0;
    return below;
}

/* The line of a share without its sign. */
DEVICE dynamic_line quantized_line(const dynamic_turns *turns, const dynamic_line *line, float share) {
    const float x = magnitude(share);
    const uint32_t exponent = bits_of_float(share) >> 20 & (DYNAMIC_EXPONENTS - 1) * sizeof(dynamic_turns);
    const packed<uint32_t, 2> turn = *(const packed<uint32_t, 2> *)((const char *)turns + exponent);
    const uint32_t one = x > float_of_bits(turn.v[0]) ? sizeof(dynamic_line) : 0,
                   other = x > float_of_bits(turn.v[1]) ? sizeof(dynamic_line) : 0;
    const packed<float, 2> own = *(const packed<float, 2> *)((const char *)line + ((turn.v[0] & 127) + one + other));
    return { own.v[0], own.v[1] };
}

/* The bits of 256 and the code and a fraction, of shares of the largest; the line of a share with a sign is that of its
 * magnitude, from the code of 0 up or down. None is below the value of code 0: -1 has no code. */
DEVICE uint32_t quantized_m_place(const quantized_codes &c, float share) {
    const float x = larger(share, c.m_value[0]);
    const dynamic_line line = quantized_line(c.m_turns, c.m_line, x);
    return bits_of_float(fused(x, line.slope, __builtin_copysignf(line.offset, x)) +
                         (256 + DYNAMIC_ZERO + 0.5f + DYNAMIC_NEAR / 2 * DYNAMIC_PART));
}
DEVICE uint32_t quantized_v_place(const quantized_codes &c, float share) {
    const float x = larger(share, 0.0f);
    const dynamic_line line = quantized_line(c.v_turns, c.v_line, x);
    return bits_of_float(fused(x, line.slope, line.offset));
}
DEVICE bool quantized_near(uint32_t place) {
    return (place & ((1 << DYNAMIC_PART_BITS) - 1) & ~(DYNAMIC_NEAR - 1)) == 0;
}

/* The last bits of a place that are not its fraction: QUANTIZED_BASE and the code. */
#define QUANTIZED_BASE (0x43800000u >> DYNAMIC_PART_BITS)
DEVICE uint32_t quantized_code(uint32_t place) { return place >> DYNAMIC_PART_BITS; }

/* The codes as they are defined. */
DEVICE uint32_t quantized_m(const float *middle, float m, float most) {
    if (!(most > 0 && most < infinity())) return QUANTIZED_BASE + DYNAMIC_ZERO;
    const float x = magnitude(m) / most;
    const int k = quantized_below<7>(x, middle);
    return QUANTIZED_BASE + DYNAMIC_ZERO + (uint32_t)(m < 0 ? -k : k + (k == 127 && x > middle[127] ? 1 : 0));
}
DEVICE uint32_t quantized_v(const float *middle, float v, float most) {
    return QUANTIZED_BASE + (most > 0 && most < infinity() ? (uint32_t)quantized_below<8>(v / most, middle) : 0u);
}

/* Has a block's largest a reciprocal, and its other elements shares that are good enough? */
DEVICE bool quantized_plain(float most) { return most > 0x1p-100f && most < 0x1p100f; }

/* ------------------------------------------------------------------------------------------------------------- step */

/* A thread's elements: in vectors of 16 bytes of the wider of both types, each beside those of the other threads. */
template <class T, class G> struct quantized_shape {
    static constexpr int N = sizeof(typename T::bits) > 2 || sizeof(typename G::bits) > 2 ? 4 : 8;
    static constexpr int VECTORS = QUANTIZED_VECTOR / N;
};
template <int N> DEVICE lane quantized_lane(const adamw_quantized_params &p, int64_t block, int vector) {
    return { block * DYNAMIC_BLOCK + (vector * QUANTIZED_LINE + thread_index() % QUANTIZED_LINE) * N, p.n, p.aligned };
}

/* A vector of a WHOLE block, which has all its elements and is aligned, or of another. */
template <class T, bool WHOLE, int N> DEVICE void quantized_load(float (&x)[N], const void *data, const lane &l) {
    load_lane<T, WHOLE>(x, (const typename T::bits *)data, l);
}
template <class T, bool WHOLE, int N> DEVICE void quantized_store(const float (&x)[N], void *data, const lane &l) {
    if constexpr (WHOLE)
        store_vector<T>(x, (typename T::bits *)data + l.at);
    else
        store<T>(x, data, l);
}
template <bool WHOLE, int WORDS>
DEVICE void quantized_load_codes(uint32_t (&word)[WORDS], const uint8_t *data, const lane &l) {
    if constexpr (WHOLE) {
        const packed<uint32_t, WORDS> whole = *(const packed<uint32_t, WORDS> *)(data + l.at);
#pragma unroll
        for (int i = 0; i < WORDS; i++) word[i] = whole.v[i];
    } else {
#pragma unroll
        for (int k = 0; k < 4 * WORDS; k++)
            if (within(l, k)) word[k / 4] |= (uint32_t)data[l.at + k] << k % 4 * 8;
    }
}
/* Of codes on QUANTIZED_BASE. */
template <bool WHOLE, int N>
DEVICE void quantized_store_codes(const uint32_t (&code)[N], uint8_t *data, const lane &l) {
    if constexpr (WHOLE) {
        uint32_t word[N / 4];
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            word[i] = code[4 * i + 3];
#pragma unroll
            for (int k = 2; k >= 0; k--) word[i] = word[i] * 256 + code[4 * i + k];
            word[i] -= QUANTIZED_BASE * 0x01010101u;
        }
        store_whole(word, data + l.at);
    } else {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (within(l, k)) data[l.at + k] = (uint8_t)code[k];
    }
}
/* Number k of codes' values. */
template <int WORDS> DEVICE float quantized_value(const float (&value)[256], const uint32_t (&word)[WORDS], int k) {
    const uint32_t byte = k % 4 == 0 ? word[k / 4] << 2 : word[k / 4] >> (k % 4 * 8 - 2);
    return *(const float *)((const char *)value + (byte & 255 * sizeof(float)));
}

template <bool WHOLE, int N>
DEVICE void quantized_put_copy(const adamw_quantized_params &p, const float (&param)[N], const lane &l) {
    if (!p.copy) return;
    if (p.copy_bf16)
        quantized_store<bf16, WHOLE>(param, p.copy, l);
    else
        quantized_store<f16, WHOLE>(param, p.copy, l);
}

/* The new moments of a vector's elements, 0 beyond the last, and its parameters. Each operation on moments is
 * rounded. */
template <class T, class G, bool WHOLE, int N>
DEVICE void quantized_step(float (&m)[N], float (&v)[N], const adamw_quantized_params &p,
                           const adamw_quantized_shared &shared, const two &most, float scale, const lane &l) {
    float param[N], grad[N];
    uint32_t m_code[N / 4] = {}, v_code[N / 4] = {};
    quantized_load<T, WHOLE>(param, p.param, l);
    quantized_load<G, WHOLE>(grad, p.grad, l);
    quantized_load_codes<WHOLE>(m_code, p.m, l);
    quantized_load_codes<WHOLE>(v_code, p.v, l);
    const adamw_scalars s = shared.scalars;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const float g = product(grad[k], scale);
        m[k] = product(quantized_value(shared.codes.m_value, m_code, k), most.a);
        v[k] = product(quantized_value(shared.codes.v_value, v_code, k), most.b);
        m[k] = product(p.beta1, m[k]) + product(p.rest1, g);
        v[k] = product(p.beta2, v[k]) + product(p.rest2, product(g, g));
        const float denominator = fused(square_root_approx(v[k]), s.inverse_root, p.eps);
        param[k] = fused(-s.rate, m[k] * reciprocal(denominator), fused(-s.decay, param[k], param[k]));
        if (!WHOLE && !within(l, k)) m[k] = v[k] = 0;
    }
    quantized_put_copy<WHOLE>(p, param, l);
    by_chance_param<T>(param, p.chances, (uint64_t)l.at);
    quantized_store<T, WHOLE>(param, p.param, l);
}

/* A vector's codes. */
template <bool WHOLE, int N>
DEVICE void quantized_put(const adamw_quantized_params &p, const quantized_codes &c, const float (&m)[N],
                          const float (&v)[N], const two &most, const lane &l) {
    const bool m_plain = quantized_plain(most.a), v_plain = quantized_plain(most.b);
    const float m_inverse = m_plain ? reciprocal(most.a) : 0.0f, v_inverse = v_plain ? reciprocal(most.b) : 0.0f;
    bool near = !m_plain || !v_plain;
    uint32_t m_place[N], v_place[N], m_code[N], v_code[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        m_place[k] = quantized_m_place(c, m[k] * m_inverse);
        v_place[k] = quantized_v_place(c, v[k] * v_inverse);
        near = near | quantized_near(m_place[k]) | quantized_near(v_place[k]);
        m_code[k] = quantized_code(m_place[k]);
        v_code[k] = quantized_code(v_place[k]);
    }
    if (near) {
        /* one after the other: this is rare, and long */
#pragma unroll 1
        for (int k = 0; k < N; k++) {
            float of_m = 0, of_v = 0;
            bool m_near = !m_plain, v_near = !v_plain;
#pragma unroll
            for (int e = 0; e < N; e++) {
                of_m = e == k ? m[e] : of_m;
                of_v = e == k ? v[e] : of_v;
                m_near = m_near | (e == k && quantized_near(m_place[e]));
                v_near = v_near | (e == k && quantized_near(v_place[e]));
            }
            if (!m_near && !v_near) continue;
            const uint32_t own_m = quantized_m(c.m_middle, of_m, most.a), own_v = quantized_v(c.v_middle, of_v, most.b);
#pragma unroll
            for (int e = 0; e < N; e++) {
                m_code[e] = e == k && m_near ? own_m : m_code[e];
                v_code[e] = e == k && v_near ? own_v : v_code[e];
            }
        }
    }
    quantized_store_codes<WHOLE>(m_code, p.m, l);
    quantized_store_codes<WHOLE>(v_code, p.v, l);
}

/* Bits of which the largest is the largest number's, or NaN's if one is. */
DEVICE uint32_t quantized_order(float x) { return bits_of_float(x) & 0x7fffffffu; }
struct quantized_most {
    uint32_t m, v;
    DEVICE void see(float of_m, float of_v) {
        const uint32_t a = quantized_order(of_m), b = quantized_order(not_negative(of_v));
        m = a > m ? a : m;
        v = b > v ? b : v;
    }
};
struct quantized_larger {
    DEVICE quantized_most operator()(quantized_most x, const quantized_most &y) const {
        return { x.m > y.m ? x.m : y.m, x.v > y.v ? x.v : y.v };
    }
};

template <class T, class G, bool WHOLE>
DEVICE void quantized_block(const adamw_quantized_params &p, const adamw_quantized_shared &shared, float scale,
                            int64_t block) {
    using shape = quantized_shape<T, G>;
    float m[shape::VECTORS][shape::N], v[shape::VECTORS][shape::N];
    const two before = { p.m_most[block], p.v_most[block] };
    quantized_most most = {};
#pragma unroll
    for (int i = 0; i < shape::VECTORS; i++) {
        quantized_step<T, G, WHOLE>(m[i], v[i], p, shared, before, scale, quantized_lane<shape::N>(p, block, i));
#pragma unroll
        for (int k = 0; k < shape::N; k++) most.see(m[i][k], v[i][k]);
    }
    most = group_combine<QUANTIZED_LINE>(most, quantized_larger());
    const two after = { float_of_bits(most.m), float_of_bits(most.v) };
#pragma unroll
    for (int i = 0; i < shape::VECTORS; i++)
        quantized_put<WHOLE>(p, shared.codes, m[i], v[i], after, quantized_lane<shape::N>(p, block, i));
    if (thread_index() % QUANTIZED_LINE == 0) {
        p.m_most[block] = after.a;
        p.v_most[block] = after.b;
    }
}

template <class T, class G> DEVICE void quantized_skip(const adamw_quantized_params &p, int64_t block) {
    using shape = quantized_shape<T, G>;
#pragma unroll
    for (int i = 0; i < shape::VECTORS; i++) {
        const lane l = quantized_lane<shape::N>(p, block, i);
        float param[shape::N];
        load<T>(param, p.param, l);
        quantized_put_copy<false>(p, param, l);
    }
}

template <class T, class G> DEVICE void adamw_quantized(const adamw_quantized_params &p) {
    struct alignas(16) room {
        adamw_quantized_shared shared;
    };
    SHARED room own;
    const adamw_quantized_shared &shared = own.shared;
    const bool skips = p.found_inf && *p.found_inf != 0;
    const float scale = p.grad_scale ? *p.grad_scale : 1.0f;
    quantized_copy(own.shared, *p.shared);
    sync_block();
    const int64_t first = block_index() * QUANTIZED_LINES + thread_index() / QUANTIZED_LINE;
#pragma unroll 1
    for (int64_t block = first; block * DYNAMIC_BLOCK < p.n; block += p.step)
        if (skips)
            quantized_skip<T, G>(p, block);
        else if (p.aligned && (block + 1) * DYNAMIC_BLOCK <= p.n)
            quantized_block<T, G, true>(p, shared, scale, block);
        else
            quantized_block<T, G, false>(p, shared, scale, block);
}

#define QUANTIZED(T, G) \
    ENTRY_HELD(adamw_quantized_##T##_##G, SIMT_THREADS, QUANTIZED_HELD, adamw_quantized_params) { \
        adamw_quantized<T, G>(p); \
    }
QUANTIZED(f32, f32)
QUANTIZED(f32, bf16)
QUANTIZED(f32, f16)
QUANTIZED(bf16, f32)
QUANTIZED(bf16, bf16)
QUANTIZED(bf16, f16)
QUANTIZED(f16, f32)
QUANTIZED(f16, bf16)
QUANTIZED(f16, f16)
