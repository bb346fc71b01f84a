/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric by multiply-adds: a block has a tile on the diagonal or below, a thread 8 x 8 sums of it (4 x 4 of
 * f64), each in the order of k. */
#ifndef TRINE_SIMT_MATMUL_SYMMETRIC_SIMT_INL_H
#define TRINE_SIMT_MATMUL_SYMMETRIC_SIMT_INL_H

#include "matmul_symmetric_tiles.inl.h"

/* How an element is read and summed. */
template <class T> struct symmetric_float {
    using bits = typename T::bits;
    using sum = float;
    enum { SIDE = SYMMETRIC_SIDE };
    static DEVICE float get(bits b) { return T::get(b); }
    static DEVICE bits put(float x) { return T::put(x); }
    static DEVICE float step(float a, float b, float s) { return fused(a, b, s); }
};
struct symmetric_double {
    using bits = double;
    using sum = double;
    enum { SIDE = SYMMETRIC_SIDE_F64 };
    static DEVICE double get(bits b) { return b; }
    static DEVICE bits put(double x) { return x; }
    static DEVICE double step(double a, double b, double s) { return __builtin_fma(a, b, s); }
};

/* The lanes of a tile, as a block fetches them a step at a time: what a thread has of that, and puts where all find
 * it. */
template <class T> struct symmetric_lanes {
    enum {
        SIDE = T::SIDE,
        DEPTH = SYMMETRIC_STEP / SIDE,
        ACROSS = SIDE / VECTOR,
        ALONG = DEPTH / VECTOR,
        PITCH = SIDE + 1
    };
    const symmetric_params &p;
    const typename T::bits *from;
    int64_t first;
    typename T::bits v[VECTOR];

    DEVICE symmetric_lanes(const symmetric_params &params, int64_t batch, int64_t lane)
        : p(params), from((const typename T::bits *)params.a + batch * params.batch), first(lane) {}
    DEVICE void fetch(int64_t at) {
        const int thread = thread_index();
        if (p.across) {
            const int64_t k = at + thread / ACROSS, i = first + thread % ACROSS * VECTOR;
            load_bits(v, from + (k < p.k ? k : 0) * p.along, { k < p.k ? i : p.m, p.m, p.aligned });
        } else {
            const int64_t i = first + thread / ALONG, k = at + thread % ALONG * VECTOR;
            load_bits(v, from + (i < p.m ? i : 0) * p.lane, { i < p.m ? k : p.k, p.k, p.aligned });
        }
    }
    DEVICE void keep(typename T::sum (*to)[PITCH]) const {
        const int thread = thread_index();
#pragma unroll
        for (int q = 0; q < VECTOR; q++)
            if (p.across)
                to[thread / ACROSS][thread % ACROSS * VECTOR + q] = T::get(v[q]);
            else
                to[thread % ALONG * VECTOR + q][thread / ALONG] = T::get(v[q]);
    }
};

/* An element at its place and at the one across the diagonal. */
template <class T, class O>
DEVICE void symmetric_put(const symmetric_params &p, int64_t batch, int64_t i, int64_t j, typename T::sum sum) {
    using bits = typename O::bits;
    if (i >= p.m || j > i) return;
    bits *const d = (bits *)p.d.data + batch * p.d.batch;
    typename T::sum x = (typename T::sum)p.alpha * sum;
    if (p.c.data)
        x = T::step((typename T::sum)p.beta, O::get(((const bits *)p.c.data)[batch * p.c.batch + i * p.c.row + j]), x);
    d[i * p.d.row + j] = d[j * p.d.row + i] = O::put(x);
}

template <class T, class O> DEVICE void symmetric_product(const symmetric_params &p) {
    using lanes = symmetric_lanes<T>;
    using sum_type = typename T::sum;
    enum { SQUARE = 16, EACH = T::SIDE / SQUARE };
    static_assert(SQUARE * SQUARE == (int)SIMT_THREADS, "a thread has its part of the sums");
    SHARED sum_type a[lanes::DEPTH][lanes::PITCH], b[lanes::DEPTH][lanes::PITCH];
    const symmetric_tile tile(p.tiles, T::SIDE);
    const int down = thread_index() / SQUARE, right = thread_index() % SQUARE;
    lanes left(p, tile.batch, tile.row), other(p, tile.batch, tile.column);
    sum_type sum[EACH][EACH] = {};
    if (p.k > 0) {
        left.fetch(0);
        other.fetch(0);
    }
    for (int64_t at = 0; at < p.k; at += lanes::DEPTH) {
        sync_block();
        left.keep(a);
        other.keep(b);
        sync_block();
        if (at + lanes::DEPTH < p.k) {
            left.fetch(at + lanes::DEPTH);
            other.fetch(at + lanes::DEPTH);
        }
#pragma unroll 4
        for (int q = 0; q < lanes::DEPTH; q++) {
            sum_type u[EACH], v[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++) u[i] = a[q][down + i * SQUARE];
#pragma unroll
            for (int j = 0; j < EACH; j++) v[j] = b[q][right + j * SQUARE];
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++) sum[i][j] = T::step(u[i], v[j], sum[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            symmetric_put<T, O>(p, tile.batch, tile.row + down + i * SQUARE, tile.column + right + j * SQUARE,
                                sum[i][j]);
}

#endif
