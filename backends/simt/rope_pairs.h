/* SPDX-License-Identifier: Apache-2.0 */
/* The rotation that rope and rope_backward share on devices. A position out of range makes its pairs NaN. */
#ifndef TRINE_SIMT_ROPE_PAIRS_H
#define TRINE_SIMT_ROPE_PAIRS_H

#include "rope.h"
#include "row.h"

/* `head`: the first of those that a thread turns by the same factors. */
struct rope_place {
    int64_t batch, token, head, unit;
};
template <class Integer> DEVICE rope_place rope_place_of(const rope_params &p, Integer number, int heads) {
    const Integer row = quotient(number, p.row_units), token = quotient(row, p.groups), batch = quotient(token, p.s);
    return { (int64_t)batch, (int64_t)(token - batch * (Integer)p.s.by), (int64_t)(row - token * (Integer)p.groups.by) * heads,
             (int64_t)(number - row * (Integer)p.row_units.by) };
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

/* N elements of HEADS heads: pairs 2i and 2i + 1. */
template <class T, class W, int N, int HEADS>
DEVICE void rope_neighbours(const rope_params &p, const rope_place &place, const typename T::bits *x, typename T::bits *y) {
    float a[HEADS][N], cosine[N / 2], sine[N / 2];
#pragma unroll
    for (int i = 0; i < HEADS; i++) load_vector<T>(a[i], x + i * p.x_stride[2] + place.unit * N);
    rope_factors<W>(cosine, sine, p, place);
#pragma unroll
    for (int i = 0; i < HEADS; i++) {
#pragma unroll
        for (int k = 0; k < N; k += 2) rope_rotate(a[i][k], a[i][k + 1], cosine[k / 2], sine[k / 2]);
        store_vector<T>(a[i], y + i * p.y_stride[2] + place.unit * N);
    }
}

/* N pairs of HEADS heads: elements i and i + c, or two neighbours. */
template <class T, class W, int N, int HEADS>
DEVICE void rope_halves(const rope_params &p, const rope_place &place, const typename T::bits *x, typename T::bits *y) {
    const int64_t first = (p.interleaved ? 2 : 1) * place.unit * N, second = first + (p.interleaved ? 1 : p.c);
    float a[HEADS][N], b[HEADS][N], cosine[N], sine[N];
#pragma unroll
    for (int i = 0; i < HEADS; i++) {
        load_vector<T>(a[i], x + i * p.x_stride[2] + first);
        load_vector<T>(b[i], x + i * p.x_stride[2] + second);
    }
    rope_factors<W>(cosine, sine, p, place);
#pragma unroll
    for (int i = 0; i < HEADS; i++) {
#pragma unroll
        for (int k = 0; k < N; k++) rope_rotate(a[i][k], b[i][k], cosine[k], sine[k]);
        store_vector<T>(a[i], y + i * p.y_stride[2] + first);
        store_vector<T>(b[i], y + i * p.y_stride[2] + second);
    }
}

/* N of the elements beyond the pairs. */
template <class T, int N, int HEADS> DEVICE void rope_rest(const rope_params &p, int64_t at, const typename T::bits *x, typename T::bits *y) {
    packed<typename T::bits, N> rest[HEADS];
#pragma unroll
    for (int i = 0; i < HEADS; i++) rest[i] = *(const packed<typename T::bits, N> *)(x + i * p.x_stride[2] + at);
#pragma unroll
    for (int i = 0; i < HEADS; i++)
        if constexpr (N == 1)
            y[i * p.y_stride[2] + at] = rest[i].v[0];
        else
            store_whole(rest[i].v, y + i * p.y_stride[2] + at);
}

/* A unit of vectors of N elements, or of single ones. */
template <class T, class W, int N, int HEADS> DEVICE void rope_units(const rope_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.units) return;
    const rope_place place = divides_fast(p.units) ? rope_place_of(p, (uint32_t)number, HEADS) : rope_place_of(p, (uint64_t)number, HEADS);
    const auto *x = (const typename T::bits *)p.x + place.batch * p.x_stride[0] + place.token * p.x_stride[1] + place.head * p.x_stride[2];
    auto *y = (typename T::bits *)p.y + place.batch * p.y_stride[0] + place.token * p.y_stride[1] + place.head * p.y_stride[2];
    if (place.unit >= p.pair_units) {
        rope_rest<T, N, HEADS>(p, 2 * p.c + (place.unit - p.pair_units) * N, x, y);
        return;
    }
    if constexpr (N > 1) {
        if (p.interleaved) {
            rope_neighbours<T, W, N, HEADS>(p, place, x, y);
            return;
        }
    }
    rope_halves<T, W, N, HEADS>(p, place, x, y);
}

template <class T, class W> DEVICE void rope_all(const rope_params &p) {
    constexpr int N = ROPE_BYTES / sizeof(typename T::bits);
    if (p.wide && p.heads > 1)
        rope_units<T, W, N, ROPE_HEADS>(p);
    else if (p.wide)
        rope_units<T, W, N, 1>(p);
    else
        rope_units<T, W, 1, 1>(p);
}

#define ROPE(op, T, W) \
    ENTRY(op##_##T##_##W, SIMT_THREADS, rope_params) { rope_all<T, W>(p); }
#define ROPE_ENTRIES(op) ROPE(op, f32, f32) ROPE(op, bf16, f32) ROPE(op, f16, f32) ROPE(op, bf16, bf16) ROPE(op, f16, f16)

#endif
