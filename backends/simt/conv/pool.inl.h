/* SPDX-License-Identifier: Apache-2.0 */
/* What pool2d and its gradient share on devices: windows, and the largest of one. */
#ifndef TRINE_SIMT_POOL_INL_H
#define TRINE_SIMT_POOL_INL_H

#include <trine/conv.h>

#include "pool.h"
#include "summed.h"
#include "backends/simt/core/quotient.h"

/* The part of window `at` that is within: places first, first + dilation, ..., so many. */
struct pool_part {
    int64_t first, count;

    DEVICE pool_part(const pool_axis &a, int64_t at) {
        const int64_t start = at * a.stride - a.pad,
                      skipped = start < 0 ? floor_quotient(-start + a.dilation - 1, a.dilation) : 0;
        first = start + skipped * a.dilation;
        const int64_t most = first < a.in ? floor_quotient(a.in - 1 - first, a.dilation) + 1 : 0,
                      left = a.kernel > skipped ? a.kernel - skipped : 0;
        count = most < left ? most : left;
    }
};

/* An element of an array: the thread's. */
struct pool_place {
    int64_t n, h, w, c;

    DEVICE pool_place(const pool_params &p, int64_t number, int64_t high, int64_t wide) {
        int64_t rest = number;
        const auto take = [&](int64_t size) {
            const int64_t over = floor_quotient(rest, size), part = rest - over * size;
            rest = over;
            return part;
        };
        if (!p.across) c = take(p.c);
        w = take(wide), h = take(high);
        if (p.across) c = take(p.c);
        n = rest;
    }
    DEVICE int64_t in(const pool_view &v) const { return n * v.n + h * v.h + w * v.w + c * v.c; }
};

/* Where in its image the largest of a window is: of equal ones the first, of several NaN the last; -1: nowhere. */
template <class T, class Value>
DEVICE int64_t pool_largest(const pool_params &p, int64_t image, const pool_part &h, const pool_part &w,
                            Value *most_out) {
    const typename T::bits *const x = (const typename T::bits *)p.x.data + image;
    Value most = -(Value)infinity();
    int64_t best = -1;
    for (int64_t i = 0; i < h.count; i++)
        for (int64_t j = 0; j < w.count; j++) {
            const int64_t row = h.first + i * p.h.dilation, column = w.first + j * p.w.dilation;
            const Value v = T::get(x[row * p.x.h + column * p.x.w]);
            if (v > most || v != v || best < 0) most = v, best = row * p.w.in + column;
        }
    *most_out = most;
    return best;
}

/* What a mean is over. */
template <class Value> DEVICE Value pool_over(const pool_params &p, const pool_part &h, const pool_part &w) {
    if (p.kind == TRINE_POOL2D_MEAN_PADDED) return (Value)p.h.kernel * (Value)p.w.kernel;
    return h.count > 0 && w.count > 0 ? (Value)h.count * (Value)w.count : 1;
}

#endif
