/* SPDX-License-Identifier: Apache-2.0 */
/* quantize on devices: a team of threads has a group, and reads it twice, for its range and for its codes.
 *
 * NOTES. Floor: x once, codes once; the second reading is from the first-level cache. Quotients are those of a
 * division, in 5 operations where a division takes 9 and a branch. */
#include "quantize.h"
#include "codes.inl.h"
#include "backends/simt/core/philox.h"

#define WHOLE \
    12582912.0f /* 1.5 2^23: added to a number below 2^22 it leaves the nearest whole number in the low bits */

/* x / by, correctly rounded. Where nothing leaves the range of normal numbers, by two corrections with a reciprocal
 * that is correctly rounded itself (Markstein 1990, theorem 8.4). */
struct quantize_divisor {
    float by, reciprocal;
    bool plain;
    DEVICE explicit quantize_divisor(float x) : by(x), reciprocal(1.0f / x), plain(x >= 0x1p-60f && x <= 0x1p60f) {}
    DEVICE float of(float x) const {
        if (!plain) return by > 0 ? x / by : 0.0f;
        const float rough = product(x, reciprocal), near = fused(fused(-rough, by, x), reciprocal, rough);
        return fused(fused(-near, by, x), reciprocal, near);
    }
};

/* Of a group's numbers and 0: the largest size, as bits, so that Inf is above all numbers and NaN above Inf. */
struct quantize_range {
    uint32_t size;
    float min, max;
};
struct quantize_wider {
    DEVICE quantize_range operator()(const quantize_range &a, const quantize_range &b) const {
        return { a.size > b.size ? a.size : b.size, a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max };
    }
};

struct quantize_grid {
    float scale, base; /* scale 0: q is 0 */
};

DEVICE float quantize_clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

DEVICE quantize_grid quantize_grid_of(const quantize_params &q, const code_group &group, const quantize_range &range,
                                      bool writes) {
    const simt_codes &p = q.codes;
    const float low = q.low - p.offset, high = q.high - p.offset;
    const float largest = p.type == CODES_F32    ? f32::largest()
                          : p.type == CODES_BF16 ? bf16::largest()
                                                 : f16::largest();
    float scale = p.zeros.data ? range.max / (high - low) - range.min / (high - low)
                               : (-range.min > range.max ? -range.min : range.max) / (high > 1 ? high : 1.0f);
    scale = range.size >= INF_BITS ? not_a_number() : code_rounded(p, scale > largest ? largest : scale);
    if (writes) group.store(p, p.scales, scale);
    quantize_grid grid = { scale > 0 ? scale : 0.0f, p.offset };
    if (!p.zeros.data) return grid;
    const float quotient = grid.scale > 0 ? range.min / grid.scale : 0.0f;
    const float steps = magnitude(quotient) < 0x1p22f ? (quotient + WHOLE) - WHOLE : quotient;
    const float zero = code_rounded(p, quantize_clamp(low - steps, low, high));
    if (writes) group.store(p, p.zeros, zero);
    grid.base += zero;
    return grid;
}

/* The nearest whole number, or one of the two around by the word of the element. */
template <bool CHANCE> DEVICE int32_t quantize_round(float x, uint32_t word) {
    if (!CHANCE) return (int32_t)(bits_of_float(x + WHOLE) - bits_of_float(WHOLE));
    int32_t whole = (int32_t)x;
    whole -= (float)whole > x;
    return whole + ((float)(word >> 9) + 0.5f < (x - (float)whole) * 0x1p23f);
}

template <bool CHANCE> DEVICE int32_t quantize_e2m1(float x, uint32_t word) {
    const float size = magnitude(x);
    const float scaled = product(size, size < 2 ? 2.0f : size < 4 ? 1.0f : 0.5f);
    const int32_t code = quantize_round<CHANCE>(scaled, word) + (size < 2 ? 0 : size < 4 ? 2 : 4);
    return x < 0 && code > 0 ? code | 8 : code;
}

/* The words of 8 elements from number `index` on. */
DEVICE void quantize_words(uint32_t (&word)[CODES_UNIT], const simt_dropout &chances, uint64_t index) {
    if (index % CODES_UNIT == 0) {
        const four w = philox(chances, (uint32_t)(index / 8), (uint32_t)(index / 8 >> 32));
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) word[j] = philox_word(w, j);
        return;
    }
#pragma unroll 1
    for (int block = 0; block < 2; block++) {
        const uint64_t number = index / 8 + block;
        const four w = philox(chances, (uint32_t)number, (uint32_t)(number >> 32));
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++)
#pragma unroll
            for (int e = 0; e < CODES_UNIT; e++)
                if ((int)(index % 8) + j == 8 * block + e) word[j] = philox_word(w, e);
    }
}

template <bool CHANCE>
DEVICE uint64_t quantize_unit(const quantize_params &q, const quantize_grid &grid, const quantize_divisor &divisor,
                              const float (&x)[CODES_UNIT], const uint32_t (&word)[CODES_UNIT]) {
    const float low = q.low - grid.base, high = q.high - grid.base;
    const uint32_t mask = (1u << q.codes.bits) - 1;
    uint64_t packed = 0;
#pragma unroll
    for (int j = 0; j < CODES_UNIT; j++) {
        const float v = quantize_clamp(divisor.of(x[j]), low, high);
        const int32_t code = q.codes.e2m1 ? quantize_e2m1<CHANCE>(v + grid.base, word[j])
                                          : quantize_round<CHANCE>(v, word[j]) + (int32_t)grid.base;
        packed |= (uint64_t)((uint32_t)code & mask) << j * q.codes.bits;
    }
    return packed;
}

template <class T, int G, bool CHANCE> DEVICE void quantize_group(const quantize_params &q) {
    const simt_codes &p = q.codes;
    const int64_t item = block_index() * (SIMT_THREADS / G) + thread_index() / G;
    const bool there = item < p.items;
    const int64_t n = there ? p.n : 0, first = (int64_t)(thread_index() % G) * CODES_UNIT;
    const code_group group(p, there ? item : 0);
    const typename T::bits *numbers = group.template numbers<T>(p);
    float x[CODES_UNIT];

    quantize_range range = { 0, 0.0f, 0.0f };
#pragma unroll 1
    for (int64_t at = first; at < n; at += G * CODES_UNIT) {
        load<T>(x, numbers, lane{ at, n, p.vectors });
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++)
            range = quantize_wider()(range, { bits_of_float(magnitude(x[j])), x[j], x[j] });
    }
    range = group_combine<G>(range, quantize_wider());
    range.min = range.min < 0 ? range.min : 0.0f;
    range.max = range.max > 0 ? range.max : 0.0f;
    const quantize_grid grid = quantize_grid_of(q, group, range, there && first == 0);

    const quantize_divisor divisor(grid.scale);
    const simt_dropout chances = CHANCE && q.philox ? dropout_told(q.chances, q.philox) : q.chances;
#pragma unroll 1
    for (int64_t at = first; at < n; at += G * CODES_UNIT) {
        uint32_t word[CODES_UNIT] = {};
        if (CHANCE) quantize_words(word, chances, (uint64_t)(group.row * q.k + group.at * p.n + at));
        load<T>(x, numbers, lane{ at, n, p.vectors });
        codes_store(p, group.bytes(p), at, codes_count(n, at), quantize_unit<CHANCE>(q, grid, divisor, x, word));
    }
}

#define QUANTIZE_TEAM(T, G) \
    ENTRY(quantize_##T##_##G, SIMT_THREADS, quantize_params) { quantize_group<T, G, false>(p); } \
    ENTRY(quantize_chance_##T##_##G, SIMT_THREADS, quantize_params) { quantize_group<T, G, true>(p); }
#define QUANTIZE(T) QUANTIZE_TEAM(T, 4) QUANTIZE_TEAM(T, 16) QUANTIZE_TEAM(T, 256)
QUANTIZE(f32)
QUANTIZE(bf16)
QUANTIZE(f16)
