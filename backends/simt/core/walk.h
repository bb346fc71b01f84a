/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of the walk: where a thread's unit is in each tensor. An elementwise op is then only its formula. */
#ifndef TRINE_SIMT_WALK_H
#define TRINE_SIMT_WALK_H

#include <fetch.h>
#include "params.h"
#include "simt.h"

/* What an op whose host side is simt_walk_kernels gets: the walk and a copy of its arguments, of which it reads the
 * parameters. */
template <class Args> struct walk_call {
    simt_walk walk;
    Args args;
};

struct unit {
    int64_t row[SIMT_WALK_TENSORS]; /* where the row begins in each tensor */
    int64_t at;                     /* in the row */
    int64_t index;                  /* of its first element in logical row-major order */
};

template <class Integer> DEVICE unit unit_number(const simt_walk &w, Integer number, int length) {
    Integer row = quotient(number, w.row_units);
    const int64_t at = (int64_t)(number - row * (Integer)w.row_units.by) * length;
    unit u = { {}, at, (int64_t)row * w.n + at };
#pragma unroll
    for (int d = SIMT_WALK_RANK - 2; d >= 0; d--) {
        if (row == 0) break;
        const Integer rest = quotient(row, w.shape[d]);
        const int64_t i = (int64_t)(row - rest * (Integer)w.shape[d].by);
#pragma unroll
        for (int t = 0; t < SIMT_WALK_TENSORS; t++) u.row[t] += i * w.stride[t][d];
        row = rest;
    }
    return u;
}
DEVICE unit unit_of(const simt_walk &w, int64_t number, int length) {
    if (w.units == w.row_units.by) return { {}, number * length, number * length };
    return divides_fast(w.units) ? unit_number(w, (uint32_t)number, length) : unit_number(w, (uint64_t)number, length);
}

/* Its first element in tensor `t`: a vector's last dimension is contiguous. */
template <int N, class Bits> DEVICE Bits *unit_place(const simt_walk &w, int t, const unit &u) {
    return (Bits *)w.data[t] + u.row[t] + (N == 1 ? u.at * w.step[t] : u.at);
}

template <int N, class Bits> DEVICE void unit_load_bits(Bits (&v)[N], const simt_walk &w, int t, const unit &u) {
    const packed<Bits, N> whole = *(const packed<Bits, N> *)unit_place<N, Bits>(w, t, u);
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = whole.v[k];
}
template <int N, class Bits> DEVICE void unit_store_bits(const Bits (&v)[N], const simt_walk &w, int t, const unit &u) {
    Bits *to = unit_place<N, Bits>(w, t, u);
    if constexpr (N == 1)
        *to = v[0];
    else
        store_whole(v, to);
}

template <class T, int N> DEVICE void unit_load(float (&v)[N], const simt_walk &w, int t, const unit &u) {
    load_vector<T>(v, unit_place<N, typename T::bits>(w, t, u));
}
template <class T, int N> DEVICE void unit_store(const float (&v)[N], const simt_walk &w, int t, const unit &u) {
    store_vector<T>(v, unit_place<N, typename T::bits>(w, t, u));
}

/* A tensor that may be broadcast along its last dimension. */
template <class T, int N> DEVICE void unit_load_broadcast(float (&v)[N], const simt_walk &w, int t, const unit &u) {
    if (w.step[t] != 0) {
        unit_load<T>(v, w, t, u);
        return;
    }
    const float one = load_one<T>(w.data[t], u.row[t]);
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = one;
}

/* Elements of a vector: the host has it from the same output, the last of an entry's types. */
template <class T> constexpr int walk_length = sizeof(typename T::bits) > 2 ? 4 : 8;

/* Op::step<N>(params, unit) on the thread's unit of N elements: a vector, without a test, or of a row's last elements
 * one after the other. Where all is one row, a vector's place takes a few instructions instead of thirty. */
template <class Op, int N, class Params> DEVICE void walk(const Params &p) {
    const int64_t number = block_index() * SIMT_THREADS + thread_index();
    if (number >= p.walk.units) return;
    if (p.walk.length == N && p.walk.units == p.walk.row_units.by && (number + 1) * N <= p.walk.n) {
        Op::template step<N>(p, unit{ {}, number * N, number * N });
        return;
    }
    unit u = unit_of(p.walk, number, p.walk.length == N ? N : 1);
    if (p.walk.length == N && u.at + N <= p.walk.n) {
        Op::template step<N>(p, u);
        return;
    }
    const int64_t end = p.walk.length == N ? p.walk.n : u.at + 1;
    for (; u.at < end; u.at++, u.index++) Op::template step<1>(p, u);
}

/* The entry <op>_<types> of a walk, one for each combination of types. */
#define WALK_1(op, params, T) \
    ENTRY(op##_##T, SIMT_THREADS, params) { walk<op##_op<T>, walk_length<T>>(p); }
#define WALK_2(op, params, A, T) \
    ENTRY(op##_##A##_##T, SIMT_THREADS, params) { walk<op##_op<A, T>, walk_length<T>>(p); }
#define WALK_3(op, params, A, B, T) \
    ENTRY(op##_##A##_##B##_##T, SIMT_THREADS, params) { walk<op##_op<A, B, T>, walk_length<T>>(p); }

/* One that prefetches, where instructions leave memory waiting: on an H200 casts gain 2 to 4 % and scale 1 to 3, gelu,
 * its gradient and dropout on bf16 lose 6 to 16, swiglu 3 to 4. */
#define WALK_ASKING_2(op, params, A, T) \
    ENTRY_ASKING_FOR(walk.ahead, op##_##A##_##T, SIMT_THREADS, 1, params) { walk<op##_op<A, T>, walk_length<T>>(p); }

/* simt_walk_kernels name an entry by the type variables in the order of the table;
 * entries of several types say that theirs is the same. */
#define WALK_TYPES_2(OP, A, B) static_assert(OP##_TYPE_##A == 0 && OP##_TYPE_##B == 1, "the order of an entry's types");
#define WALK_TYPES_3(OP, A, B, C) \
    static_assert(OP##_TYPE_##A == 0 && OP##_TYPE_##B == 1 && OP##_TYPE_##C == 2, "the order of an entry's types");

#define EACH_FLOAT_1(M, ...) M(__VA_ARGS__, f32) M(__VA_ARGS__, bf16) M(__VA_ARGS__, f16)
#define EACH_FLOAT_2(M, ...) \
    EACH_FLOAT_1(M, __VA_ARGS__, f32) EACH_FLOAT_1(M, __VA_ARGS__, bf16) EACH_FLOAT_1(M, __VA_ARGS__, f16)
#define EACH_FLOAT_3(M, ...) \
    EACH_FLOAT_2(M, __VA_ARGS__, f32) EACH_FLOAT_2(M, __VA_ARGS__, bf16) EACH_FLOAT_2(M, __VA_ARGS__, f16)

#endif
