/* SPDX-License-Identifier: Apache-2.0 */
/* Which pixels of a side make one of the output, and by what weights, on devices. */
#ifndef TRINE_SIMT_SIDES_INL_H
#define TRINE_SIMT_SIDES_INL_H

#include <trine/image.h>

#include "crop_resize_normalize.h"
#include "backends/simt/core/quotient.h"

DEVICE int64_t place_within(int64_t at, int64_t n) { return at < 0 ? 0 : at < n ? at : n - 1; }

DEVICE float cubic_at(float t, float m) {
    if (t <= 1) return (1 - t) * (1 + t - (m + 2) * (t * t));
    return t < 2 ? m * (t - 1) * ((t - 2) * (t - 2)) : 0;
}

/* The middle of pixel `at` of `out` is at num/den among `in`; down: the whole part, rest/den the other. */
struct side_middle {
    int64_t num, den, down, rest;

    DEVICE side_middle(const resize_params &p, int64_t at, int64_t in, int64_t out) {
        num = (2 * at + 1) * in - out, den = 2 * out;
        if (p.coordinates == TRINE_COORDINATES_ALIGN_CORNERS) num = at * (in - 1), den = out > 1 ? out - 1 : 1;
        if (p.coordinates == TRINE_COORDINATES_ASYMMETRIC) num = at * in, den = out;
        down = floor_quotient(num, den);
        rest = num - down * den;
    }
};

/* K pixels about the middle, those beyond the side being its ends; a single one where no other has a weight. */
template <int K> struct side_near {
    int64_t place[K];
    float weight[K];
    int count;

    DEVICE side_near(const resize_params &p, int64_t at, int64_t in, int64_t out) {
        const side_middle m(p, at, in, out);
        count = K > 1 && m.rest != 0 ? K : 1;
        const bool up = K == 1 && p.coordinates != TRINE_COORDINATES_ASYMMETRIC && 2 * m.rest >= m.den;
        place[0] = place_within(m.down + (up ? 1 : 0), in);
        weight[0] = 1;
        if (count == 1) return;
#pragma unroll
        for (int i = 0; i < K; i++) {
            const int64_t step = i + 1 - K / 2, off = step * m.den - m.rest, far = off < 0 ? -off : off;
            place[i] = place_within(m.down + step, in);
            weight[i] = K == 2 ? (float)(m.den - far) / (float)m.den : cubic_at((float)far / (float)m.den, p.cubic);
        }
    }
};

/* All pixels within the reach of an area or of antialias; weights are to be divided by their sum. */
struct side_spread {
    int64_t first, last, low, high, middle, in, out, wide;
    int kind;

    DEVICE side_spread(const resize_params &p, int64_t at, int64_t n, int64_t m) {
        in = n, out = m, kind = p.filter;
        low = at * in, high = low + in, middle = low + high, wide = in > out ? in : out;
        if (kind == TRINE_RESIZE_AREA) {
            first = floor_quotient(low, out), last = floor_quotient(high + out - 1, out);
            return;
        }
        const int64_t reach = (kind == TRINE_RESIZE_BICUBIC ? 4 : 2) * wide,
                      from = floor_quotient(middle - reach - out, 2 * out) + 1,
                      to = -floor_quotient(out - middle - reach, 2 * out);
        first = from > 0 ? from : 0, last = to < in ? to : in;
    }

    DEVICE float sum(const resize_params &p) const {
        if (kind == TRINE_RESIZE_AREA) return 1;
        float all = 0;
        for (int64_t i = first; i < last; i++) all += weight(p, i);
        return all;
    }

    DEVICE float weight(const resize_params &p, int64_t i) const {
        if (kind == TRINE_RESIZE_AREA) {
            const int64_t from = i * out > low ? i * out : low, to = (i + 1) * out < high ? (i + 1) * out : high;
            return (float)(to - from) / (float)in;
        }
        const int64_t off = (2 * i + 1) * out - middle, far = off < 0 ? -off : off;
        return kind == TRINE_RESIZE_BICUBIC ? cubic_at((float)far / (float)(2 * wide), p.cubic)
                                            : (float)(2 * wide - far) / (float)(2 * wide);
    }
};

#endif
