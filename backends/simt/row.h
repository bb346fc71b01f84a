/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a group of G threads works on together: what softmax, the norms, the losses and the sums share.
 *
 * A row is taken in pieces, of which each thread holds up to V vectors in registers between the steps of an op; a row of one piece is then read once. A longer
 * row is read again for each step, mostly from the second-level cache. A group is a part of a warp for short rows, so that shuffles suffice and a block has
 * several rows, and a whole block for long ones.
 *
 * Rows are WHOLE if they are aligned and their length is a multiple of 8: then every vector is one access or none, without a branch. Of others each element is
 * read by itself, by the same thread, since results must not depend on addresses. */
#ifndef TRINE_SIMT_ROW_H
#define TRINE_SIMT_ROW_H

#include "fetch.h"
#include "params.h"
#include "simt.h"

enum { ROW_VECTORS = 4, ROW_MOST = 1024 };

/* Where a thread's vector is in a row of n elements. */
template <bool WHOLE> struct span {
    using index = int64_t;
    index at, n;
};
template <> struct span<true> {
    using index = int32_t;
    index at, n;
};
template <bool WHOLE> DEVICE bool within(const span<WHOLE> &s, int k) { return s.at + k < s.n; }

/* The same if n is the row's whole length: a vector of a WHOLE row is in it or not. */
template <bool WHOLE> DEVICE bool inside(const span<WHOLE> &s, int k) { return s.at + (WHOLE ? 0 : k) < s.n; }

/* N elements one by one, element k if in(k); the others are 0. */
template <class T, int N, class In> DEVICE held<T, N> gathered(const typename T::bits *from, const In &in) {
    held<T, N> x = {};
#pragma unroll
    for (int k = 0; k < N; k++)
        if (in(k)) x.word[k / x.PER_WORD] |= (uint32_t)from[k] << k % x.PER_WORD * 16;
    return x;
}
template <class T, int N, class In> DEVICE void scatter(const float (&v)[N], typename T::bits *to, const In &in) {
#pragma unroll
    for (int k = 0; k < N; k++)
        if (in(k)) to[k] = T::put(v[k]);
}

/* Its elements; beyond the row they may be any. A WHOLE row must have a first element, which is what is read for one beyond it: a test would cost more. */
template <class T> DEVICE held<T, VECTOR> fetch_any(const void *row, const span<true> &s) {
    return *(const held<T, VECTOR> *)((const typename T::bits *)row + (s.at < s.n ? s.at : 0));
}

/* Its elements; what lies beyond the row is 0. */
template <class T> DEVICE held<T, VECTOR> emptied(held<T, VECTOR> x, const span<true> &s) {
#pragma unroll
    for (uint32_t &word : x.word) word = s.at < s.n ? word : 0;
    return x;
}
template <class T> DEVICE held<T, VECTOR> fetch(const void *row, const span<true> &s) { return emptied<T>(fetch_any<T>(row, s), s); }
template <class T> DEVICE held<T, VECTOR> fetch(const void *row, const span<false> &s) {
    return gathered<T, VECTOR>((const typename T::bits *)row + s.at, [&](int k) { return within(s, k); });
}

template <class T> DEVICE held<T, VECTOR> emptied(held<T, VECTOR> x, const span<false> &) { return x; }
template <class T> DEVICE held<T, VECTOR> fetch_any(const void *row, const span<false> &s) { return fetch<T>(row, s); }

template <class T> DEVICE void put(const float (&v)[VECTOR], void *row, const span<true> &s) {
    const held<T, VECTOR> x = held_of<T>(v);
    uint32_t *to = (uint32_t *)((typename T::bits *)row + s.at);
    if (s.at < s.n)
#pragma unroll
        for (int i = 0; i < VECTOR / x.PER_WORD; i += 4) store_words(to + i, x.word[i], x.word[i + 1], x.word[i + 2], x.word[i + 3]);
}
template <class T> DEVICE void put(const float (&v)[VECTOR], void *row, const span<false> &s) {
    scatter<T>(v, (typename T::bits *)row + s.at, [&](int k) { return within(s, k); });
}

template <int G, int V, bool WHOLE> struct group {
    static constexpr int SIZE = G, VECTORS = V;
    static constexpr bool whole = WHOLE;
    static constexpr bool ONE_PIECE = WHOLE && V == ROW_VECTORS && G < ROW_MOST; /* whatever row the host gives it (simt_row_group) */
    static constexpr int THREADS = G <= 32 ? SIMT_THREADS : G;                   /* of a block */
    static constexpr int ROWS = THREADS / G;                                     /* of a block */
    static constexpr int PIECE = G * V * VECTOR;
    using lane = span<WHOLE>;
    using index = typename lane::index;
    template <class T> using raw = held<T, VECTOR>[V];

    static DEVICE int number() { return ROWS > 1 ? thread_index() / G : 0; } /* among the block's groups */
    static DEVICE int64_t row() { return block_index() * ROWS + number(); }
    static DEVICE int rank() { return thread_index() % G; }
    static DEVICE lane place(int v, index at, index n) { return { at + (v * G + rank()) * VECTOR, n }; }

    /* Body(v, l) for each vector v of the group in the piece that begins at `at` of a row of n; l: where the thread's own is. */
    template <class Body> static DEVICE void each(index at, index n, const Body &body) {
#pragma unroll
        for (int v = 0; v < V; v++)
            if (at + v * G * VECTOR < n) body(v, place(v, at, n));
    }

    /* The thread's vectors of a piece. They are all asked for before any is looked at. */
    template <class T> static DEVICE void load(raw<T> &x, const void *row, index at, index n) {
#pragma unroll
        for (int v = 0; v < V; v++) x[v] = fetch<T>(row, place(v, at, n));
    }
    template <class T> static DEVICE void load(float (&x)[V][VECTOR], const void *row, index at, index n) {
        raw<T> bits;
        load<T>(bits, row, at, n);
#pragma unroll
        for (int v = 0; v < V; v++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) x[v][k] = bits[v].get(k);
    }
};

/* The sum of a vector, or of its squares, by pairs: a chain of additions is latency that other warps must hide. */
DEVICE float vector_sum(const float (&x)[VECTOR / 2]) { return (x[0] + x[1]) + (x[2] + x[3]); }
DEVICE float vector_squares(const float (&x)[VECTOR / 2]) { return fused(x[1], x[1], x[0] * x[0]) + fused(x[3], x[3], x[2] * x[2]); }
DEVICE float vector_sum(const float (&x)[VECTOR]) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }
DEVICE float vector_squares(const float (&x)[VECTOR]) {
    const float a = fused(x[1], x[1], x[0] * x[0]), b = fused(x[3], x[3], x[2] * x[2]), c = fused(x[5], x[5], x[4] * x[4]), d = fused(x[7], x[7], x[6] * x[6]);
    return (a + b) + (c + d);
}

/* Where a row begins. */
template <class T> DEVICE typename T::bits *row_at(const simt_rows &r, int64_t i) { return (typename T::bits *)r.data + i * r.row; }
template <class T> DEVICE typename T::bits *row_at(const simt_rows &r, int64_t batch, int64_t i) { return row_at<T>(r, i) + batch * r.batch; }

/* How many of n elements are visible in row i of s under a causal mask, which is aligned bottom-right. */
DEVICE int64_t visible(bool causal, int64_t i, int64_t s, int64_t n) { return !causal ? n : i + n - s + 1 > 0 ? i + n - s + 1 : 0; }

/* The entries <op>[_ragged]_<type>_<G> of a row op that holds one row at a time, or two: 1024 threads have 64 registers each, 512 have 128. Code for rows that
 * are not WHOLE is long: an op whose sums do not depend on it holds one vector of them (V). <op>_held() says how many blocks of whole rows a processor must
 * hold, at least. */
constexpr int row_threads(int g) { return g <= 32 ? (int)SIMT_THREADS : g; }
#define ROW_ENTRY(op, params, V, T, G) \
    ENTRY_ASKING(op##_##T##_##G, row_threads(G), op##_held<T>(row_threads(G)), params) { op##_row<T, group<G, ROW_VECTORS, true>>(p); } \
    ENTRY(op##_ragged_##T##_##G, row_threads(G), params) { op##_row<T, group<G, V, false>>(p); }
#define ROW_ENTRIES_2(op, params, V, T) \
    ROW_ENTRY(op, params, V, T, 8) \
    ROW_ENTRY(op, params, V, T, 32) \
    ROW_ENTRY(op, params, V, T, 128) \
    ROW_ENTRY(op, params, V, T, 256) \
    ROW_ENTRY(op, params, V, T, 512)
#define ROW_ENTRIES_1(op, params, V, T) ROW_ENTRIES_2(op, params, V, T) ROW_ENTRY(op, params, V, T, 1024)
#define ROW_ENTRIES_FINE(op, params, V, T) ROW_ENTRIES_1(op, params, V, T) ROW_ENTRY(op, params, V, T, 64)

#endif
