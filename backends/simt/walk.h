/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of the walk: where a thread's unit is in each tensor. An elementwise op is then only its formula. */
#ifndef TRINE_SIMT_WALK_H
#define TRINE_SIMT_WALK_H

#include "params.h"
#include "simt.h"

/* What an op whose host side is simt_walk_launch() gets: the walk and a copy of its arguments, of which it reads the parameters. */
template <class Args> struct walk_call {
    simt_walk walk;
    Args args;
};

struct unit {
    int64_t row[SIMT_WALK_RANK - 1]; /* indices of all dimensions but the last */
    int64_t at;                      /* in the last */
    int64_t index;                   /* of its first element in logical row-major order */
};

/* Units beyond 2^32 take 64-bit divisions, which cost several times as much. */
template <class Integer> DEVICE unit unit_number(const simt_walk &w, Integer number, int length) {
    Integer row = w.units == w.row_units ? 0 : number / (Integer)w.row_units;
    const int64_t at = (int64_t)(number - row * (Integer)w.row_units) * length;
    unit u = { { 0, 0, 0 }, at, (int64_t)row * w.n + at };
#pragma unroll
    for (int d = SIMT_WALK_RANK - 2; d >= 0; d--) {
        if (row == 0) break;
        const Integer rest = row / (Integer)w.shape[d];
        u.row[d] = (int64_t)(row - rest * (Integer)w.shape[d]);
        row = rest;
    }
    return u;
}
DEVICE unit unit_of(const simt_walk &w, int64_t number, int length) {
    return w.units <= 0xffffffff ? unit_number<uint32_t>(w, (uint32_t)number, length) : unit_number<uint64_t>(w, (uint64_t)number, length);
}

/* Where row `u` of tensor `t` begins. */
template <class Bits> DEVICE Bits *unit_row(const simt_walk &w, int t, const unit &u) {
    int64_t offset = 0;
#pragma unroll
    for (int d = 0; d < SIMT_WALK_RANK - 1; d++) offset += u.row[d] * w.stride[t][d];
    return (Bits *)w.data[t] + offset;
}

template <int N, class Bits> DEVICE void unit_load_bits(Bits (&v)[N], const simt_walk &w, int t, const unit &u) {
    const Bits *row = unit_row<Bits>(w, t, u);
    if (N > 1 && w.step[t] == 1) {
        load_bits(v, row, lane{ u.at, w.n, true });
        return;
    }
    const Bits one = row[u.at * w.step[t]];
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = one;
}
template <int N, class Bits> DEVICE void unit_store_bits(const Bits (&v)[N], const simt_walk &w, int t, const unit &u) {
    Bits *row = unit_row<Bits>(w, t, u);
    if (N > 1)
        store_bits(v, row, lane{ u.at, w.n, true });
    else
        row[u.at * w.step[t]] = v[0];
}

template <class T, int N> DEVICE void unit_load(float (&v)[N], const simt_walk &w, int t, const unit &u) {
    typename T::bits raw[N];
    unit_load_bits(raw, w, t, u);
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = T::get(raw[k]);
}
template <class T, int N> DEVICE void unit_store(const float (&v)[N], const simt_walk &w, int t, const unit &u) {
    typename T::bits raw[N];
#pragma unroll
    for (int k = 0; k < N; k++) raw[k] = T::put(v[k]);
    unit_store_bits(raw, w, t, u);
}

/* Op::step<N>(params, unit) on the thread's unit of N elements. */
template <class Op, class Params> DEVICE void walk(const Params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.walk.units) return;
    if (p.walk.wide)
        Op::template step<VECTOR>(p, unit_of(p.walk, number, VECTOR));
    else
        Op::template step<1>(p, unit_of(p.walk, number, 1));
}

/* The entry <op>_<types> of a walk, one for each combination of types. */
#define WALK_1(op, params, T) \
    ENTRY(op##_##T, SIMT_THREADS, params) { walk<op##_op<T>>(p); }
#define WALK_2(op, params, A, T) \
    ENTRY(op##_##A##_##T, SIMT_THREADS, params) { walk<op##_op<A, T>>(p); }
#define WALK_3(op, params, A, B, T) \
    ENTRY(op##_##A##_##B##_##T, SIMT_THREADS, params) { walk<op##_op<A, B, T>>(p); }

#define EACH_FLOAT_1(M, ...) M(__VA_ARGS__, f32) M(__VA_ARGS__, bf16) M(__VA_ARGS__, f16)
#define EACH_FLOAT_2(M, ...) EACH_FLOAT_1(M, __VA_ARGS__, f32) EACH_FLOAT_1(M, __VA_ARGS__, bf16) EACH_FLOAT_1(M, __VA_ARGS__, f16)
#define EACH_FLOAT_3(M, ...) EACH_FLOAT_2(M, __VA_ARGS__, f32) EACH_FLOAT_2(M, __VA_ARGS__, bf16) EACH_FLOAT_2(M, __VA_ARGS__, f16)

#endif
