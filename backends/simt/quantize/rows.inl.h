/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of a row as codes of a byte each, on devices: a team of threads has a group, whose numbers it asks for twice,
 * for the largest and for the codes. */
#ifndef TRINE_SIMT_QUANTIZE_ROWS_INL_H
#define TRINE_SIMT_QUANTIZE_ROWS_INL_H

#include "rows.h"
#include "codes.inl.h"
#include "backends/simt/core/float8.h"

struct row_larger {
    DEVICE uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

DEVICE float row_most(const row_codes &p) {
    return p.codes_type == ROW_I8 ? 127.0f : p.codes_type == ROW_E4M3 ? 448.0f : 57344.0f;
}

DEVICE uint8_t row_code(const row_codes &p, float q) {
    if (p.codes_type == ROW_E4M3) return e4m3::put(q, true);
    if (p.codes_type == ROW_E5M2) return e5m2::put(q, true);
    return (uint8_t)(bits_of_float(code_clamp(q, -128, 127) + CODES_WHOLE) - bits_of_float(CODES_WHOLE));
}

/* A unit of a row that ends, for this purpose, with its group. */
DEVICE lane row_lane(const row_codes &p, int64_t group, int64_t at) {
    return lane{ group * p.n + at, (group + 1) * p.n, p.vectors };
}

/* Group `group` of a row, if it is `there`: source.get(y, lane, last) gives its numbers, 0 beyond the lane, and is
 * asked the last time for an element with `last` set. */
template <class T, int G, class Source>
DEVICE void row_group(const row_codes &p, const Source &source, int64_t row, int64_t group, bool there) {
    const int64_t n = there ? p.n : 0, first = (int64_t)(thread_index() % G) * CODES_UNIT;
    float y[CODES_UNIT];
    uint32_t size = 0; /* as bits, so that Inf is above all numbers and NaN above Inf */
#pragma unroll 1
    for (int64_t at = first; at < n; at += G * CODES_UNIT) {
        source.get(y, row_lane(p, group, at), false);
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) size = row_larger()(size, bits_of_float(magnitude(y[j])));
    }
    size = group_combine<G>(size, row_larger());
    const float most = float_of_bits(size), quotient = most / row_most(p);
    const float scale = size >= INF_BITS
                            ? not_a_number()
                            : code_group_scale(p.scales_type, p.powers, most, row_most(p), quotient, p.upward);
    if (there && first == 0) code_store(p.scales_type, p.scales.data, row * p.scales.row + group, scale);

    const code_divisor divisor(scale > 0 ? scale : 0.0f);
#pragma unroll 1
    for (int64_t at = first; at < n; at += G * CODES_UNIT) {
        const lane l = row_lane(p, group, at);
        uint8_t code[CODES_UNIT];
        source.get(y, l, true);
        if (p.y.data) store<T>(y, (typename T::bits *)p.y.data + row * p.y.row, l);
#pragma unroll
        for (int j = 0; j < CODES_UNIT; j++) code[j] = row_code(p, divisor.of(y[j]) + 0.0f); /* of -0: 0 */
        store_bits(code, (uint8_t *)p.codes.data + row * p.codes.row, l);
    }
}

#endif
