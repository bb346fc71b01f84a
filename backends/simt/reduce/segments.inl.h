/* SPDX-License-Identifier: Apache-2.0 */
/* What segment_reduce and its gradient share on devices. A block of threads has COLUMNS columns of a segment; each of
 * its lines every so manieth row, and what the lines have is put together in their order. */
#ifndef TRINE_SIMT_SEGMENTS_INL_H
#define TRINE_SIMT_SEGMENTS_INL_H

#include <trine/reduce.h>

#include "segments.h"
#include "backends/simt/core/math.h"
#include "backends/simt/core/row.h"

template <int COLUMNS> struct segment_shape {
    static constexpr int ACROSS = COLUMNS / SEGMENT_VECTOR, LINES = (int)SIMT_THREADS / ACROSS;
};

/* A block's segment, and a thread's columns. `good`: its offsets ascend within the rows. */
template <int COLUMNS> struct segment_task {
    int64_t number, first, end, tile;
    int line, column; /* of the tile */
    lane l;
    bool good;

    DEVICE segment_task(const segments_params &p) {
        number = block_index() / p.tiles;
        tile = block_index() % p.tiles * COLUMNS;
        line = thread_index() / segment_shape<COLUMNS>::ACROSS;
        column = thread_index() % segment_shape<COLUMNS>::ACROSS * SEGMENT_VECTOR;
        l = { tile + column, p.n, p.aligned };
        first = load_integer(p.offsets, p.wide_offsets, number);
        end = load_integer(p.offsets, p.wide_offsets, number + 1);
        good = first >= 0 && first <= end && end <= p.p;
        if (!good) end = first;
    }
};

/* Body(row, x) on a thread's elements of each of its rows, of which AT_ONCE are on their way together. */
template <class T, int AT_ONCE = 4, int COLUMNS, class Body>
DEVICE void segment_each(const segments_params &p, const segment_task<COLUMNS> &t, const Body &body) {
#pragma unroll AT_ONCE
    for (int64_t row = t.first + t.line; row < t.end; row += segment_shape<COLUMNS>::LINES) {
        float x[SEGMENT_VECTOR];
        load<T>(x, row_at<T>(p.x, row), t.l);
        body(row, x);
    }
}

/* What the lines have of each column, put together by its thread. All threads of the block come here. */
template <int COLUMNS, class Value, class Combine>
DEVICE Value segment_combine(const segment_task<COLUMNS> &t, const Value (&own)[SEGMENT_VECTOR],
                             Value (&part)[segment_shape<COLUMNS>::LINES][COLUMNS], const Combine &combine) {
#pragma unroll
    for (int k = 0; k < SEGMENT_VECTOR; k++) part[t.line][t.column + k] = own[k];
    sync_block();
    const int column = thread_index() % COLUMNS;
    Value all = part[0][column];
#pragma unroll 4
    for (int i = 1; i < segment_shape<COLUMNS>::LINES; i++) all = combine(all, part[i][column]);
    sync_block();
    return all;
}

/* The same for a thread's own columns. */
template <int COLUMNS, class Value, class Combine>
DEVICE void segment_share(const segment_task<COLUMNS> &t, Value (&own)[SEGMENT_VECTOR],
                          Value (&part)[segment_shape<COLUMNS>::LINES][COLUMNS], const Combine &combine) {
    const Value all = segment_combine(t, own, part, combine);
    if (thread_index() < COLUMNS) part[0][thread_index()] = all;
    sync_block();
#pragma unroll
    for (int k = 0; k < SEGMENT_VECTOR; k++) own[k] = part[0][t.column + k];
    sync_block();
}

/* The larger, or the NaN. */
DEVICE bool segment_beats(float x, float most) { return !(x <= most) && most == most; }
struct segment_larger {
    DEVICE float operator()(float a, float b) const { return segment_beats(b, a) ? b : a; }
};

/* Of a thread's own columns the maximum, what is subtracted from their elements, and the sum of their powers, which is
 * 1 where the maximum is infinite. */
struct segment_power {
    float most[SEGMENT_VECTOR], shift[SEGMENT_VECTOR], sum[SEGMENT_VECTOR];
};
template <class T, int COLUMNS>
DEVICE segment_power segment_powers(const segments_params &p, const segment_task<COLUMNS> &t,
                                    float (&part)[segment_shape<COLUMNS>::LINES][COLUMNS]) {
    segment_power s = {};
#pragma unroll
    for (float &most : s.most) most = -infinity();
    segment_each<T>(p, t, [&](int64_t, const float(&x)[SEGMENT_VECTOR]) {
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++) s.most[k] = segment_beats(x[k], s.most[k]) ? x[k] : s.most[k];
    });
    segment_share(t, s.most, part, segment_larger());
#pragma unroll
    for (int k = 0; k < SEGMENT_VECTOR; k++) s.shift[k] = s.most[k] == -infinity() ? 0.0f : s.most[k];
    segment_each<T>(p, t, [&](int64_t, const float(&x)[SEGMENT_VECTOR]) {
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++) s.sum[k] += exp_of(x[k] - s.shift[k]);
    });
    segment_share(t, s.sum, part, plus());
#pragma unroll
    for (int k = 0; k < SEGMENT_VECTOR; k++) s.sum[k] = magnitude(s.most[k]) == infinity() ? 1.0f : s.sum[k];
    return s;
}

/* The product of finite numbers other than 0 is m 2^e with 1 <= |m| < 2. How many of the others there are, 2 for more,
 * has a byte each of `others`: zeros, infinities, NaN. */
struct segment_product {
    float m;
    int32_t e;
    uint32_t others;
};
constexpr uint32_t SEGMENT_ZERO = 1, SEGMENT_INF = 1 << 8, SEGMENT_NAN = 1 << 16;

/* m 2^e with |m| in [1, 4) */
DEVICE void segment_normalize(segment_product &p) {
    const uint32_t bits = bits_of_float(p.m);
    p.e += (int32_t)(bits >> 23 & 255) - 127;
    p.m = float_of_bits((bits & 0x807fffffu) | 0x3f800000u);
}
DEVICE segment_product segment_factor(float x) {
    const float size = magnitude(x);
    segment_product p = { size < 0x1p-126f ? x * 0x1p24f : x, size < 0x1p-126f ? -24 : 0, 0 };
    if (size == 0 || !(size < infinity())) {
        p.others = size == 0 ? SEGMENT_ZERO : size == infinity() ? SEGMENT_INF : SEGMENT_NAN;
        p.m = float_of_bits((bits_of_float(x) & 0x80000000u) | 0x3f800000u);
        p.e = 0;
    }
    segment_normalize(p);
    return p;
}
struct segment_times {
    DEVICE segment_product operator()(const segment_product &a, const segment_product &b) const {
        segment_product p = { a.m * b.m, a.e + b.e, a.others + b.others };
        const uint32_t two = (p.others >> 1 | p.others >> 2) & 0x10101u;
        p.others = (p.others & 0x10101u & ~two) | two << 1;
        segment_normalize(p);
        return p;
    }
};
/* Without a factor that it has. */
DEVICE segment_product segment_without(const segment_product &p, const segment_product &by) {
    return { p.m / by.m, p.e - by.e, p.others - by.others };
}

DEVICE int32_t segment_clamp(int32_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : x; }

/* Rounded once: the first factor leaves a normal number. */
DEVICE float segment_value(const segment_product &p) {
    const int32_t first = segment_clamp(p.e, -100, 100), rest = segment_clamp(p.e - first, -126, 126);
    const float size = p.m * float_of_bits((uint32_t)(first + 127) << 23) * float_of_bits((uint32_t)(rest + 127) << 23);
    if (p.others == 0) return size;
    const bool zero = p.others & 0xff, inf = p.others >> 8 & 0xff, nan = p.others >> 16;
    if (nan || (zero && inf)) return not_a_number();
    return float_of_bits((bits_of_float(p.m) & 0x80000000u) | (zero ? 0 : INF_BITS));
}

/* `own` times the elements of a thread's own columns and rows. */
template <class T, int COLUMNS>
DEVICE void segment_products(const segments_params &p, const segment_task<COLUMNS> &t,
                             segment_product (&own)[SEGMENT_VECTOR]) {
    segment_each<T, 1>(p, t, [&](int64_t, const float(&x)[SEGMENT_VECTOR]) {
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++) own[k] = segment_times()(own[k], segment_factor(x[k]));
    });
}

#define SEGMENT_ENTRIES(op, T) \
    ENTRY(op##_##T##_32, SIMT_THREADS, segments_params) { op<T, SEGMENT_FEW>(p); } \
    ENTRY(op##_##T##_128, SIMT_THREADS, segments_params) { op<T, SEGMENT_MANY>(p); }

#endif
