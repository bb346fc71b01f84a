/* SPDX-License-Identifier: Apache-2.0 */
/* The rotation that rope and rope_backward share on devices. A position out of range makes its pairs NaN. */
#ifndef TRINE_SIMT_ROPE_PAIRS_H
#define TRINE_SIMT_ROPE_PAIRS_H

#include "rope.h"
#include "simt.h"

/* N pairs from the first on: elements i and i + c, or 2i and 2i + 1. */
template <class T, int N>
DEVICE void rope_rotate(const rope_params &p, const typename T::bits *x, typename T::bits *y, const float (&cosine)[N], const float (&sine)[N], int64_t first) {
    float a[N], b[N];
    const int64_t c = p.c;
    if (p.interleaved) {
        float pair[2 * N];
        const lane l = { 2 * first, 2 * c, N > 1 };
        load<T>(pair, x, l);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float u = pair[2 * k], v = pair[2 * k + 1];
            pair[2 * k] = fused(u, cosine[k], -(v * sine[k]));
            pair[2 * k + 1] = fused(v, cosine[k], u * sine[k]);
        }
        store<T>(pair, y, l);
        return;
    }
    const lane l = { first, c, N > 1 };
    load<T>(a, x, l);
    load<T>(b, x + c, l);
#pragma unroll
    for (int k = 0; k < N; k++) {
        const float u = a[k], v = b[k];
        a[k] = fused(u, cosine[k], -(v * sine[k]));
        b[k] = fused(v, cosine[k], u * sine[k]);
    }
    store<T>(a, y, l);
    store<T>(b, y + c, l);
}

template <class T, class W, int N> DEVICE void rope_unit(const rope_params &p, int64_t number) {
    const bool narrow = p.units <= 0xffffffff;
    const int64_t row = narrow ? (int64_t)((uint32_t)number / (uint32_t)p.row_units) : number / p.row_units, unit = number - row * p.row_units;
    const int64_t token = row / p.h, head = row - token * p.h, batch = token / p.s, i = token - batch * p.s;
    const typename T::bits *x = (const typename T::bits *)p.x + batch * p.x_stride[0] + i * p.x_stride[1] + head * p.x_stride[2];
    typename T::bits *y = (typename T::bits *)p.y + batch * p.y_stride[0] + i * p.y_stride[1] + head * p.y_stride[2];
    if (unit >= p.pair_units) {
        typename T::bits rest[N];
        const lane l = { 2 * p.c + (unit - p.pair_units) * N, p.d, N > 1 };
        load_bits(rest, x, l);
        store_bits(rest, y, l);
        return;
    }
    const int64_t position = p.positions ? load_integer(p.positions, p.long_positions, batch * p.position_stride[0] + i * p.position_stride[1]) : i;
    const lane l = { unit * N, p.c, N > 1 };
    float cosine[N], sine[N];
    if (position >= 0 && position < p.p) {
        load<W>(cosine, (const typename W::bits *)p.cos.data + position * p.cos.row, l);
        load<W>(sine, (const typename W::bits *)p.sin.data + position * p.sin.row, l);
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) cosine[k] = sine[k] = not_a_number();
    }
#pragma unroll
    for (int k = 0; k < N; k++) sine[k] *= p.sign;
    rope_rotate<T, N>(p, x, y, cosine, sine, l.at);
}

template <class T, class W> DEVICE void rope_all(const rope_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.units) return;
    if (p.wide)
        rope_unit<T, W, VECTOR>(p, number);
    else
        rope_unit<T, W, 1>(p, number);
}

#define ROPE(op, T, W) \
    ENTRY(op##_##T##_##W, SIMT_THREADS, rope_params) { rope_all<T, W>(p); }
#define ROPE_ENTRIES(op) ROPE(op, f32, f32) ROPE(op, bf16, f32) ROPE(op, f16, f32) ROPE(op, bf16, bf16) ROPE(op, f16, f16)

#endif
