/* SPDX-License-Identifier: Apache-2.0 */
/* quantize on devices: a team of threads has a group, and reads it twice, for its range and for its codes.
 *
 * NOTES. Floor: x once, codes once; the second reading is from the first-level cache. Quotients are those of a
 * division, in 5 operations where a division takes 9 and a branch. */
#include <trine/quantize.h>

#include "quantize.h"
#include "codes.inl.h"
#include "backends/simt/core/philox_words.h"

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

struct quantize_larger {
    DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};
DEVICE double quantize_by_pairs(const double (&part)[CODES_UNIT]) {
    double sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    sum += shuffle_xor(sum, 1);
    return sum + shuffle_xor(sum, 2);
}

/* The scale of finite numbers that is fitted to their standard deviation: the first 4 threads of a team have the 32
 * parts of sums. Products in f64 are exact, fused or not. */
template <class T, int G>
DEVICE float quantize_fitted(const quantize_params &q, const typename T::bits *numbers, int64_t n) {
    const int thread = thread_index() % G;
    const float most = q.high - q.codes.offset > 1 ? q.high - q.codes.offset : 1.0f, ratio = q.deviations / most;
    double sum[CODES_UNIT] = {}, squares[CODES_UNIT] = {};
#pragma unroll 1
    for (int64_t at = (int64_t)thread * CODES_UNIT; thread < 4 && at < n; at += 4 * CODES_UNIT) {
        float x[CODES_UNIT];
        load<T>(x, numbers, lane{ at, n, q.codes.vectors });
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) {
            sum[j] += x[j];
            squares[j] += (double)x[j] * x[j];
        }
    }
    const double count = n > 0 ? (double)n : 1, mean = (float)(quantize_by_pairs(sum) / count),
                 variance = quantize_by_pairs(squares) / count - mean * mean,
                 deviation = (float)(variance > 0 ? square_root(variance) : 0), size = ratio * deviation + 1e-8;
    uint64_t bits;
    __builtin_memcpy(&bits, &size, sizeof bits);
    const int32_t exponent = (int32_t)(bits >> 52) - 1023 + 127;
    const uint32_t power = exponent < 0 ? 0 : exponent > 254 ? 254 : (uint32_t)exponent;
    return e8m0::get((uint8_t)group_combine<G>(thread < 4 ? power : 0u, quantize_larger()));
}

/* fitted: 0 where the scale is not. */
DEVICE quantize_grid quantize_grid_of(const quantize_params &q, const code_group &group, const quantize_range &range,
                                      float fitted, bool writes) {
    const simt_codes &p = q.codes;
    const float low = q.low - p.offset, high = q.high - p.offset;
    const float size = -range.min > range.max ? -range.min : range.max, most = high > 1 ? high : 1.0f;
    float scale = p.zeros.data ? range.max / (high - low) - range.min / (high - low) : size / most;
    scale = range.size >= INF_BITS ? not_a_number()
            : fitted > 0
                ? code_power_within(p.type, fitted)
                : code_group_scale(p.type, q.powers != TRINE_POWERS_E8M0, size, most, scale, q.upward || p.zeros.data);
    if (writes) group.store(p.scales, p.type, scale);
    quantize_grid grid = { scale > 0 ? scale : 0.0f, p.offset };
    if (!p.zeros.data) return grid;
    const float quotient = grid.scale > 0 ? range.min / grid.scale : 0.0f;
    const float steps = magnitude(quotient) < 0x1p22f ? (quotient + CODES_WHOLE) - CODES_WHOLE : quotient;
    const float zero = code_rounded(p.others, code_clamp(low - steps, low, high));
    if (writes) group.store(p.zeros, p.others, zero);
    grid.base += zero;
    return grid;
}

/* The nearest whole number, or one of the two around by the word of the element, or from the middle as ties says: then
 * sizes are rounded, and have their signs. */
template <bool CHANCE> DEVICE int32_t quantize_round(float x, uint32_t word, int32_t ties) {
    if (!CHANCE) return (int32_t)(bits_of_float(x + CODES_WHOLE) - bits_of_float(CODES_WHOLE));
    if (ties != TRINE_TIES_EVEN) {
        const int32_t below = (int32_t)magnitude(x);
        const float part = magnitude(x) - (float)below;
        const int32_t nearest = below + (part > 0.5f || (ties == TRINE_TIES_AWAY && part == 0.5f) ? 1 : 0);
        return x < 0 ? -nearest : nearest;
    }
    int32_t whole = (int32_t)x;
    whole -= (float)whole > x;
    return whole + ((float)(word >> 9) + 0.5f < (x - (float)whole) * 0x1p23f);
}

template <bool CHANCE> DEVICE int32_t quantize_e2m1(float x, uint32_t word, int32_t ties) {
    const float size = magnitude(x);
    const float scaled = product(size, size < 2 ? 2.0f : size < 4 ? 1.0f : 0.5f);
    const int32_t code = quantize_round<CHANCE>(scaled, word, ties) + (size < 2 ? 0 : size < 4 ? 2 : 4);
    return x < 0 && code > 0 ? code | 8 : code;
}

/* But to even: in steps of 2^-FRACTION times the power of two below, or below the smallest normal, 2^(1-BIAS). */
template <class T, int FRACTION, int BIAS, bool CHANCE>
DEVICE int32_t quantize_float8(float x, uint32_t word, int32_t ties) {
    if (!CHANCE) return T::put(x, true);
    const uint32_t power = bits_of_float(x) & INF_BITS, lowest = (uint32_t)(128 - BIAS) << 23,
                   step = (power > lowest ? power : lowest) - ((uint32_t)FRACTION << 23);
    const int32_t whole = quantize_round<true>(product(magnitude(x), float_of_bits((254u << 23) - step)), word, ties);
    const uint32_t y = bits_of_float(product((float)whole, float_of_bits(step)));
    return T::put(float_of_bits(y | (bits_of_float(x) & 0x80000000u)), true);
}

template <bool CHANCE>
DEVICE uint64_t quantize_unit(const quantize_params &q, const quantize_grid &grid, const code_divisor &divisor,
                              const float (&x)[CODES_UNIT], const uint32_t (&word)[CODES_UNIT]) {
    const float low = q.low - grid.base, high = q.high - grid.base;
    const uint32_t mask = (1u << q.codes.bits) - 1;
    uint64_t packed = 0;
#pragma unroll
    for (int j = 0; j < CODES_UNIT; j++) {
        const float v = code_clamp(divisor.of(x[j]), low, high);
        const int32_t code =
            q.codes.e2m1                   ? quantize_e2m1<CHANCE>(v + grid.base, word[j], q.ties)
            : q.codes.float8 == CODES_E4M3 ? quantize_float8<e4m3, 3, 7, CHANCE>(v + grid.base, word[j], q.ties)
            : q.codes.float8 == CODES_E5M2 ? quantize_float8<e5m2, 2, 15, CHANCE>(v + grid.base, word[j], q.ties)
                                           : quantize_round<CHANCE>(v, word[j], q.ties) + (int32_t)grid.base;
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
    const float fitted = q.powers == TRINE_POWERS_FITTED && !p.zeros.data ? quantize_fitted<T, G>(q, numbers, n) : 0.0f;
    const quantize_grid grid = quantize_grid_of(q, group, range, fitted, there && first == 0);

    const code_divisor divisor(grid.scale);
    const simt_dropout chances = CHANCE && q.philox ? dropout_told(q.chances, q.philox) : q.chances;
#pragma unroll 1
    for (int64_t at = first; at < n; at += G * CODES_UNIT) {
        uint32_t word[CODES_UNIT] = {};
        if (CHANCE && q.ties == TRINE_TIES_EVEN)
            philox_words(word, chances, (uint64_t)(group.row * q.k + group.at * p.n + at));
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
