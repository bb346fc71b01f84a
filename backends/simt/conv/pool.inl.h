/* SPDX-License-Identifier: Apache-2.0 */
/* What pool2d and its gradient share on devices: windows, pieces of neighbouring channels, and the largest of them. */
#ifndef TRINE_SIMT_POOL_INL_H
#define TRINE_SIMT_POOL_INL_H

#include <trine/conv.h>

#include "pool.h"
#include "summed.h"

/* Numbers below 2^31, or any; quotients are of those that are not negative. */
struct pool_short {
    using number = int32_t;
    static DEVICE number over(number a, const simt_divisor &d) { return (number)quotient((uint32_t)a, d); }
};
struct pool_long {
    using number = int64_t;
    static DEVICE number over(number a, const simt_divisor &d) { return a / d.by; }
};

/* The part of window `at` that is within: places first, first + dilation, ..., so many; `skipped` come before them. */
template <class Numbers> struct pool_part {
    using number = typename Numbers::number;
    number first, count, skipped;

    DEVICE pool_part(const pool_axis &a, number at) {
        const number dilation = (number)a.dilation.by, kernel = (number)a.kernel, in = (number)a.in.by,
                     start = at * (number)a.stride.by - (number)a.pad;
        skipped = start < 0 ? Numbers::over(dilation - 1 - start, a.dilation) : 0;
        first = start + skipped * dilation;
        const number most = first < in ? Numbers::over(in - 1 - first, a.dilation) + 1 : 0,
                     left = kernel > skipped ? kernel - skipped : 0;
        count = most < left ? most : left;
    }
};

/* A piece of an array: the thread's. */
template <class Numbers> struct pool_place {
    using number = typename Numbers::number;
    number n, h, w, piece;

    DEVICE pool_place(const pool_params &p, int64_t own, const simt_divisor &high, const simt_divisor &wide) {
        number rest = (number)own;
        const auto take = [&](const simt_divisor &size) {
            const number over = Numbers::over(rest, size), part = rest - over * (number)size.by;
            rest = over;
            return part;
        };
        if (!p.across) piece = take(p.pieces);
        w = take(wide), h = take(high);
        if (p.across) piece = take(p.pieces);
        n = rest;
    }
};

/* The channels of a piece, `count` of them at most. */
template <class T> struct pool_channels {
    using bits = typename T::bits;
    using value = typename conv_summed<T>::type;
    enum { V = POOL_BYTES / sizeof(bits) };

    static DEVICE int count(const pool_params &p, int64_t piece) {
        const int64_t left = p.c - piece * p.own;
        return left < p.own ? (int)left : p.own;
    }
    /* Of image n, from the piece on. */
    static DEVICE bits *image(const pool_params &p, const pool_view &v, int64_t n, int64_t piece) {
        return (bits *)v.data + n * v.n + piece * p.own * v.c;
    }
    static DEVICE void load(value (&x)[V], const bits *from, const pool_view &v, int count) {
        packed<bits, V> raw = {};
        if (v.whole)
            raw = *(const packed<bits, V> *)from;
        else
#pragma unroll
            for (int i = 0; i < V; i++)
                if (i < count) raw.v[i] = from[i * v.c];
#pragma unroll
        for (int i = 0; i < V; i++) x[i] = T::get(raw.v[i]);
    }
    static DEVICE void store(bits *to, const value (&x)[V], const pool_view &v, int count) {
        packed<bits, V> raw;
#pragma unroll
        for (int i = 0; i < V; i++) raw.v[i] = T::put(x[i]);
        if (v.whole)
            *(packed<bits, V> *)to = raw;
        else
#pragma unroll
            for (int i = 0; i < V; i++)
                if (i < count) to[i * v.c] = raw.v[i];
    }

    /* The largest of each, and its number, where that of the first tap is `first` and grows by `down` and `right`: of
     * equal ones the first, of several NaN the last; -1: there is none. */
    template <class Numbers, class Number = typename Numbers::number>
    static DEVICE void largest(value (&most)[V], Number (&best)[V], const pool_params &p, const bits *image, int count,
                               const pool_part<Numbers> &h, const pool_part<Numbers> &w, Number first, Number down,
                               Number right) {
        const bool any = h.count > 0 && w.count > 0;
#pragma unroll
        for (int e = 0; e < V; e++) most[e] = -(value)infinity(), best[e] = any ? first : -1;
        const int64_t step = p.w.dilation.by * p.x.w, line = p.h.dilation.by * p.x.h;
        const bits *row = image + h.first * p.x.h + w.first * p.x.w;
#pragma unroll 1
        for (Number i = 0; i < h.count; i++, row += line, first += down) {
            const bits *from = row;
            Number own = first;
            for (Number j = 0; j < w.count; j++, from += step, own += right) {
                value x[V];
                load(x, from, p.x, count);
#pragma unroll
                for (int e = 0; e < V; e++) {
                    const bool more = x[e] > most[e] || x[e] != x[e];
                    most[e] = more ? x[e] : most[e], best[e] = more ? own : best[e];
                }
            }
        }
    }
};

/* What a mean is over. */
template <class Value, class Numbers>
DEVICE Value pool_over(const pool_params &p, const pool_part<Numbers> &h, const pool_part<Numbers> &w) {
    if (p.kind == TRINE_POOL2D_MEAN_PADDED) return (Value)p.h.kernel * (Value)p.w.kernel;
    return h.count > 0 && w.count > 0 ? (Value)h.count * (Value)w.count : 1;
}

#endif
