/* SPDX-License-Identifier: Apache-2.0 */
/* The rotation that rope and rope_backward share on devices. A position out of range makes its pairs NaN. */
#ifndef TRINE_SIMT_ROPE_PAIRS_H
#define TRINE_SIMT_ROPE_PAIRS_H

#include "rope.h"
#include "row.h"

struct rope_place {
    int64_t batch, token, head, unit;
};
template <class Integer> DEVICE rope_place rope_place_of(const rope_params &p, Integer number) {
    const Integer row = number / (Integer)p.row_units, token = row / (Integer)p.h, batch = token / (Integer)p.s;
    return { (int64_t)batch, (int64_t)(token - batch * (Integer)p.s), (int64_t)(row - token * (Integer)p.h), (int64_t)(number - row * (Integer)p.row_units) };
}

/* The factors of N pairs, or NaN. */
template <class W, int N> DEVICE void rope_factors(float (&cosine)[N], float (&sine)[N], const rope_params &p, const rope_place &place) {
    const int64_t row = place.batch * p.position_stride[0] + place.token * p.position_stride[1];
    const int64_t position = p.positions ? load_integer(p.positions, p.long_positions, row) : place.token;
    if (position >= 0 && position < p.p) {
        load_vector<W>(cosine, row_at<W>(p.cos, position) + place.unit * N);
        load_vector<W>(sine, row_at<W>(p.sin, position) + place.unit * N);
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) cosine[k] = sine[k] = not_a_number();
    }
#pragma unroll
    for (int k = 0; k < N; k++) sine[k] *= p.sign;
}

DEVICE void rope_rotate(float &a, float &b, float cosine, float sine) {
    const float u = a, v = b;
    a = fused(u, cosine, -(v * sine));
    b = fused(v, cosine, u * sine);
}

/* N pairs, elements i and i + c or 2i and 2i + 1: two vectors either way. Or N of the elements beyond. */
template <class T, class W, int N> DEVICE void rope_unit(const rope_params &p, const rope_place &place) {
    using bits = typename T::bits;
    const bits *x = (const bits *)p.x + place.batch * p.x_stride[0] + place.token * p.x_stride[1] + place.head * p.x_stride[2];
    bits *y = (bits *)p.y + place.batch * p.y_stride[0] + place.token * p.y_stride[1] + place.head * p.y_stride[2];
    if (place.unit >= p.pair_units) {
        const int64_t at = 2 * p.c + (place.unit - p.pair_units) * N;
        const packed<bits, N> rest = *(const packed<bits, N> *)(x + at);
        if constexpr (N == 1)
            y[at] = rest.v[0];
        else
            store_whole(rest.v, y + at);
        return;
    }
    const int64_t first = (p.interleaved ? 2 : 1) * place.unit * N, second = first + (p.interleaved ? N : p.c);
    float a[N], b[N], cosine[N], sine[N];
    load_vector<T>(a, x + first);
    load_vector<T>(b, x + second);
    rope_factors<W>(cosine, sine, p, place);
    if (N > 1 && p.interleaved) {
#pragma unroll
        for (int k = 0; k < N; k += 2) {
            rope_rotate(a[k], a[k + 1], cosine[k / 2], sine[k / 2]);
            rope_rotate(b[k], b[k + 1], cosine[(N + k) / 2], sine[(N + k) / 2]);
        }
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) rope_rotate(a[k], b[k], cosine[k], sine[k]);
    }
    store_vector<T>(a, y + first);
    store_vector<T>(b, y + second);
}

template <class T, class W> DEVICE void rope_all(const rope_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.units) return;
    const rope_place place = p.units <= 0xffffffff ? rope_place_of<uint32_t>(p, (uint32_t)number) : rope_place_of<uint64_t>(p, (uint64_t)number);
    if (p.wide)
        rope_unit<T, W, ROPE_BYTES / sizeof(typename T::bits)>(p, place);
    else
        rope_unit<T, W, 1>(p, place);
}

#define ROPE(op, T, W) \
    ENTRY(op##_##T##_##W, SIMT_THREADS, rope_params) { rope_all<T, W>(p); }
#define ROPE_ENTRIES(op) ROPE(op, f32, f32) ROPE(op, bf16, f32) ROPE(op, f16, f32) ROPE(op, bf16, bf16) ROPE(op, f16, f16)

#endif
