/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on devices, for few rows of x: 32 threads have a row of codes, each a word of it at a time.
 *
 * NOTES. Floor: codes once. A word is four bytes, so that those of a team are consecutive; x comes from the caches. A
 * code becomes a float as the last bits of 2^23, which costs less than a conversion. */
#include <trine/matmul.h>

#include "matmul_quantized.h"
#include "backends/simt/core/math.h"
#include "backends/simt/quantize/codes.inl.h"

DEVICE float quantized_load(quantized_float type, const void *data, int64_t i) {
    if (type == QUANTIZED_F32) return load_one<f32>(data, i);
    return type == QUANTIZED_BF16 ? load_one<bf16>(data, i) : load_one<f16>(data, i);
}

/* What a code of group g of row j stands for is (code - offset - zero) scale + min. */
struct quantized_group {
    float scale, zero, min;
};
DEVICE quantized_group quantized_group_of(const quantized_params &p, int64_t j, int32_t g) {
    quantized_group r = { quantized_load(p.scale_type, p.scales.data, j * p.scales.row + g), 0, 0 };
    if (p.zeros.data) r.zero = quantized_load(p.scale_type, p.zeros.data, j * p.zeros.row + g);
    if (p.mins.data) r.min = quantized_load(p.scale_type, p.mins.data, j * p.mins.row + g);
    return r;
}

DEVICE float quantized_step(const quantized_params &p, uint32_t code) {
    if (p.e2m1) return code_e2m1(code) - p.none;
    return float_of_bits(0x4b000000u | code) - p.none;
}

DEVICE uint32_t quantized_fetch(const uint8_t *from, bool aligned) {
    if (aligned) return *(const uint32_t *)from;
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

/* Words, or parts of one, that are on their way at a time: of several rows of x there are no registers for more. */
template <int R> constexpr int QUANTIZED_AHEAD = R == 1 ? 4 : 1;

/* Sums of a few rows of x times weights. */
template <int R> struct quantized_sums {
    float of[R];
    DEVICE friend quantized_sums operator+(quantized_sums a, const quantized_sums &b) {
#pragma unroll
        for (int r = 0; r < R; r++) a.of[r] += b.of[r];
        return a;
    }
};

/* Adds the products of a word's codes, of which x has the elements from `at` on. */
template <class T, int R, int BITS>
DEVICE void quantized_word(quantized_sums<R> &sums, const quantized_params &p, const typename T::bits *const (&x)[R],
                           int64_t at, uint32_t word, const quantized_group &group) {
    constexpr int CODES = 32 / BITS, V = CODES < VECTOR ? CODES : VECTOR;
    [[maybe_unused]] constexpr int AHEAD = QUANTIZED_AHEAD<R>;
    float dot[R] = {}, all[R] = {};
#pragma unroll AHEAD
    for (int first = 0; first < CODES; first += V) {
        float w[V];
#pragma unroll
        for (int c = 0; c < V; c++)
            w[c] = quantized_step(p, word >> (first + c) * BITS & ((1u << BITS) - 1)) - group.zero;
#pragma unroll
        for (int r = 0; r < R; r++) {
            float v[V];
            const typename T::bits *const from = x[r] + at + first;
            if (p.x_aligned) {
                load_vector<T>(v, from);
            } else {
#pragma unroll
                for (int c = 0; c < V; c++) v[c] = T::get(from[c]);
            }
#pragma unroll
            for (int c = 0; c < V; c++) dot[r] = fused(v[c], w[c], dot[r]);
            if (p.mins.data) {
#pragma unroll
                for (int c = 0; c < V; c++) all[r] += v[c];
            }
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        sums.of[r] = fused(dot[r], group.scale, sums.of[r]);
        if (p.mins.data) sums.of[r] = fused(all[r], group.min, sums.of[r]);
    }
}

template <class T, int R, int BITS>
DEVICE void quantized_words(quantized_sums<R> &sums, const quantized_params &p, const typename T::bits *const (&x)[R],
                            int64_t j, int lane) {
    const int32_t words = (int32_t)p.group.by, all = p.groups * words;
    const uint8_t *const codes = p.codes + j * p.codes_row;
    [[maybe_unused]] constexpr int AHEAD = QUANTIZED_AHEAD<R>;
#pragma unroll AHEAD
    for (int32_t w = lane; w < all; w += QUANTIZED_TEAM) {
        const int32_t g = (int32_t)quotient((uint32_t)w, p.group), at = w - g * words;
        const uint32_t word = quantized_fetch(codes + g * p.codes_group + at * 4, p.codes_aligned) ^ p.flip;
        quantized_word<T, R, BITS>(sums, p, x, (int64_t)w * (32 / BITS), word, quantized_group_of(p, j, g));
    }
}

/* Code by code, of any bits. */
template <class T, int R>
DEVICE void quantized_codes(quantized_sums<R> &sums, const quantized_params &p, const typename T::bits *const (&x)[R],
                            int64_t j, int lane) {
    const int32_t group = (int32_t)p.group.by, all = p.groups * group;
    const uint8_t *const codes = p.codes + j * p.codes_row;
#pragma unroll 1
    for (int32_t l = lane; l < all; l += QUANTIZED_TEAM) {
        const int32_t g = (int32_t)quotient((uint32_t)l, p.group);
        const int64_t bit = (int64_t)(l - g * group) * p.bits;
        const uint8_t *const from = codes + g * p.codes_group + bit / 8;
        uint32_t code = from[0];
        if (bit % 8 + p.bits > 8) code |= (uint32_t)from[1] << 8;
        code = (code >> bit % 8 ^ p.flip) & ((1u << p.bits) - 1);
        const quantized_group one = quantized_group_of(p, j, g);
        const float w = quantized_step(p, code) - one.zero;
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float v = T::get(x[r][l]);
            sums.of[r] = fused(v * w, one.scale, sums.of[r]);
            if (p.mins.data) sums.of[r] = fused(v, one.min, sums.of[r]);
        }
    }
}

DEVICE float quantized_activated(float x, int32_t activation) {
    switch (activation) {
    case TRINE_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case TRINE_ACTIVATION_GELU_TANH: return x * gelu_logistic(x).of;
    case TRINE_ACTIVATION_GELU_ERF: return x * normal_of(x).cdf;
    case TRINE_ACTIVATION_SILU: return x * sigmoid(x);
    default: return x;
    }
}

DEVICE void quantized_store(const quantized_params &p, int64_t i, int64_t j, float sum) {
    const int64_t at = i * p.y.row + j;
    if (p.bias) sum += quantized_load(p.bias_type, p.bias, j);
    sum = quantized_activated(sum, p.activation);
    if (p.out_type == QUANTIZED_F32)
        store_one<f32>(p.y.data, at, sum);
    else if (p.out_type == QUANTIZED_BF16)
        store_one<bf16>(p.y.data, at, sum);
    else
        store_one<f16>(p.y.data, at, sum);
}

template <class T, int R> DEVICE void quantized_few(const quantized_params &p) {
    const int lane = thread_index() % QUANTIZED_TEAM;
    const int64_t row = block_index() * (SIMT_THREADS / QUANTIZED_TEAM) + thread_index() / QUANTIZED_TEAM,
                  j = row < p.n ? row : p.n - 1;
    const typename T::bits *x[R];
#pragma unroll
    for (int r = 0; r < R; r++) x[r] = (const typename T::bits *)p.x.data + (r < p.m ? r : p.m - 1) * p.x.row;
    quantized_sums<R> sums = {};
    if (!p.words)
        quantized_codes<T, R>(sums, p, x, j, lane);
    else if (p.bits == 1)
        quantized_words<T, R, 1>(sums, p, x, j, lane);
    else if (p.bits == 2)
        quantized_words<T, R, 2>(sums, p, x, j, lane);
    else if (p.bits == 4)
        quantized_words<T, R, 4>(sums, p, x, j, lane);
    else
        quantized_words<T, R, 8>(sums, p, x, j, lane);
    sums = group_sum<QUANTIZED_TEAM>(sums);
#pragma unroll
    for (int r = 0; r < R; r++)
        if (lane == r && row < p.n && r < p.m) quantized_store(p, r, j, sums.of[r]);
}

#define QUANTIZED_FEW(T, rows) \
    ENTRY(matmul_quantized_##T##_##rows, SIMT_THREADS, quantized_params) { quantized_few<T, rows>(p); }
QUANTIZED_FEW(f32, 1)
QUANTIZED_FEW(f32, 4)
QUANTIZED_FEW(bf16, 1)
QUANTIZED_FEW(bf16, 4)
QUANTIZED_FEW(f16, 1)
QUANTIZED_FEW(f16, 4)
