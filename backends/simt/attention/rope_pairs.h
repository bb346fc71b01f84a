/* SPDX-License-Identifier: Apache-2.0 */
/* The rotation that rope and rope_backward share on devices. A position out of range makes its pairs NaN. */
#ifndef TRINE_SIMT_ROPE_PAIRS_H
#define TRINE_SIMT_ROPE_PAIRS_H

#include <fetch.h>
#include "rope.h"
#include "backends/simt/core/row.h"

/* `head`: the first of those that a thread turns by the same factors. */
struct rope_place {
    int64_t batch, token, head, unit;
};
template <class Integer> DEVICE rope_place rope_place_of(const rope_params &p, Integer number, int heads) {
    const Integer row = quotient(number, p.row_units), token = quotient(row, p.groups), batch = quotient(token, p.s);
    return { (int64_t)batch, (int64_t)(token - batch * (Integer)p.s.by),
             (int64_t)(row - token * (Integer)p.groups.by) * heads, (int64_t)(number - row * (Integer)p.row_units.by) };
}

/* The factors of N pairs, which begin at `first`, and the second half of them, if pairs are neighbours, at `second`;
 * or NaN. */
template <class W, int N>
DEVICE void rope_factors(float (&cosine)[N], float (&sine)[N], const rope_params &p, const rope_place &place,
                         int64_t first, int64_t second) {
    constexpr int HALF = N / 2;
    const int64_t row = place.batch * p.position_stride[0] + place.token * p.position_stride[1];
    const int64_t position = p.positions ? load_integer(p.positions, p.long_positions, row) : place.token;
    if (position >= 0 && position < p.p) {
        const auto *c = row_at<W>(p.cos, position), *s = row_at<W>(p.sin, position);
        if (N > 1 && p.interleaved) {
            float half[4][HALF > 0 ? HALF : 1];
            load_vector<W>(half[0], c + first / 2);
            load_vector<W>(half[1], c + second / 2);
            load_vector<W>(half[2], s + first / 2);
            load_vector<W>(half[3], s + second / 2);
#pragma unroll
            for (int k = 0; k < HALF; k++)
                cosine[k] = half[0][k], cosine[HALF + k] = half[1][k], sine[k] = half[2][k],
                sine[HALF + k] = half[3][k];
        } else {
            load_vector<W>(cosine, c + first);
            load_vector<W>(sine, s + first);
        }
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

/* N pairs: of elements of both vectors, or of neighbours in the one and in the other. */
template <class T, int N>
DEVICE void rope_turn(held<T, N> &a, held<T, N> &b, const float (&cosine)[N], const float (&sine)[N],
                      bool interleaved) {
    float u[N], v[N];
#pragma unroll
    for (int k = 0; k < N; k++) u[k] = a.get(k), v[k] = b.get(k);
    if (interleaved) {
#pragma unroll
        for (int k = 0; k < N; k += 2) {
            rope_rotate(u[k], u[k + 1], cosine[k / 2], sine[k / 2]);
            rope_rotate(v[k], v[k + 1], cosine[(N + k) / 2], sine[(N + k) / 2]);
        }
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) rope_rotate(u[k], v[k], cosine[k], sine[k]);
    }
    a = held_of<T>(u);
    b = held_of<T>(v);
}

/* Two vectors of each of HEADS heads, which are asked for before it matters whether they hold pairs. */
template <class T, class W, int HEADS, bool PARTIAL> DEVICE void rope_vectors(const rope_params &p) {
    enum { N = ROPE_VECTOR };
    using vector = held<T, N>;
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.units) return;
    const rope_place place =
        divides_fast(p.units) ? rope_place_of(p, (uint32_t)number, HEADS) : rope_place_of(p, (uint64_t)number, HEADS);
    const bool pairs = !PARTIAL || place.unit < p.pair_units;
    const int64_t first = place.unit * N + (pairs ? 0 : p.c), beyond = first + (pairs ? p.c : p.gap),
                  second = !PARTIAL || beyond < p.d ? beyond : first;
    const auto *x = (const typename T::bits *)p.x + place.batch * p.x_stride[0] + place.token * p.x_stride[1] +
                    place.head * p.x_stride[2];
    auto *y = (typename T::bits *)p.y + place.batch * p.y_stride[0] + place.token * p.y_stride[1] +
              place.head * p.y_stride[2];
    vector a[HEADS], b[HEADS];
#pragma unroll
    for (int i = 0; i < HEADS; i++) {
        a[i] = *(const vector *)(x + i * p.x_stride[2] + first);
        b[i] = *(const vector *)(x + i * p.x_stride[2] + second);
    }
    if (pairs) {
        float cosine[N], sine[N];
        rope_factors<W>(cosine, sine, p, place, first, second);
#pragma unroll
        for (int i = 0; i < HEADS; i++) rope_turn(a[i], b[i], cosine, sine, p.interleaved);
    }
#pragma unroll
    for (int i = 0; i < HEADS; i++) {
        store_whole(a[i].word, y + i * p.y_stride[2] + first);
        store_whole(b[i].word, y + i * p.y_stride[2] + second);
    }
}

/* A pair, or an element beyond the pairs. */
template <class T, class W> DEVICE void rope_singles(const rope_params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.units) return;
    const rope_place place =
        divides_fast(p.units) ? rope_place_of(p, (uint32_t)number, 1) : rope_place_of(p, (uint64_t)number, 1);
    const auto *x = (const typename T::bits *)p.x + place.batch * p.x_stride[0] + place.token * p.x_stride[1] +
                    place.head * p.x_stride[2];
    auto *y = (typename T::bits *)p.y + place.batch * p.y_stride[0] + place.token * p.y_stride[1] +
              place.head * p.y_stride[2];
    if (place.unit >= p.pair_units) {
        y[p.c + place.unit] = x[p.c + place.unit];
        return;
    }
    const int64_t first = (p.interleaved ? 2 : 1) * place.unit, second = first + (p.interleaved ? 1 : p.c);
    float a = T::get(x[first]), b = T::get(x[second]), cosine[1], sine[1];
    rope_factors<W>(cosine, sine, p, place, place.unit, place.unit);
    rope_rotate(a, b, cosine[0], sine[0]);
    y[first] = T::put(a);
    y[second] = T::put(b);
}

/* Blocks that an SM holds, by registers: as measured on an H200. */
#define ROPE(op, T, W) \
    ENTRY(op##_single_##T##_##W, SIMT_THREADS, rope_params) { rope_singles<T, W>(p); } \
    ENTRY_ASKING(op##_##T##_##W##_1, SIMT_THREADS, 8, rope_params) { rope_vectors<T, W, 1, false>(p); } \
    ENTRY_ASKING(op##_partial_##T##_##W##_1, SIMT_THREADS, 8, rope_params) { rope_vectors<T, W, 1, true>(p); }
#define ROPE_SHARED(op, T, W) \
    ROPE(op, T, W) \
    ENTRY_ASKING(op##_##T##_##W##_4, SIMT_THREADS, 5, rope_params) { rope_vectors<T, W, 4, false>(p); } \
    ENTRY_ASKING(op##_partial_##T##_##W##_2, SIMT_THREADS, 8, rope_params) { rope_vectors<T, W, 2, true>(p); }
#define ROPE_ENTRIES(op) \
    ROPE(op, f32, f32) \
    ROPE_SHARED(op, bf16, f32) ROPE_SHARED(op, f16, f32) ROPE_SHARED(op, bf16, bf16) ROPE_SHARED(op, f16, f16)

#endif
