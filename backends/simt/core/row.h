/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a group of G threads works on together: what softmax, the norms, the losses and the sums share.
 *
 * A row is taken in pieces, of which each thread holds up to V vectors in registers between the steps of an op; a row
 * of one piece is then read once. A longer row is read again for each step, mostly from L2. A group is a part of a warp
 * for short rows, so that shuffles suffice and a block has several rows, and a whole block for long ones.
 *
 * Rows are WHOLE if they are aligned and their length is a multiple of 8: then every vector is one access or none,
 * without a branch. Those of others begin anywhere (shifted.h). */
#ifndef TRINE_SIMT_ROW_H
#define TRINE_SIMT_ROW_H

#include <fetch.h>
#include "params.h"
#include "shifted.h"
#include "simt.h"

enum { ROW_VECTORS = 4, ROW_MOST = 1024 };

/* Where a thread's vector is in a row of n elements; so many threads of a warp have vectors one behind the other, and
 * put them together. */
template <bool WHOLE> struct span {
    using index = int64_t;
    index at, n;
    int lanes;
};
template <> struct span<true> {
    using index = int32_t;
    index at, n;
};
template <bool WHOLE> DEVICE bool within(const span<WHOLE> &s, int k) { return s.at + k < s.n; }

/* The same if n is the row's whole length: a vector of a WHOLE row is in it or not. */
template <bool WHOLE> DEVICE bool inside(const span<WHOLE> &s, int k) { return s.at + (WHOLE ? 0 : k) < s.n; }

/* Its elements; beyond the row they may be any. A WHOLE row must have a first element, which is what is read for one
 * beyond it: a test would cost more. */
template <class T> DEVICE held<T, VECTOR> fetch_any(const void *row, const span<true> &s) {
    return *(const held<T, VECTOR> *)((const typename T::bits *)row + (s.at < s.n ? s.at : 0));
}

/* Its elements; what lies beyond the row is 0. */
template <class T> DEVICE held<T, VECTOR> emptied(held<T, VECTOR> x, const span<true> &s) {
#pragma unroll
    for (uint32_t &word : x.word) word = s.at < s.n ? word : 0;
    return x;
}
template <class T> DEVICE held<T, VECTOR> fetch(const void *row, const span<true> &s) {
    return emptied<T>(fetch_any<T>(row, s), s);
}
template <class T> DEVICE held<T, VECTOR> emptied(held<T, VECTOR> x, const span<false> &) { return x; }

template <class T> DEVICE void put(const float (&v)[VECTOR], void *row, const span<true> &s) {
    const held<T, VECTOR> x = held_of<T>(v);
    uint32_t *to = (uint32_t *)((typename T::bits *)row + s.at);
    if (s.at < s.n)
#pragma unroll
        for (int i = 0; i < VECTOR / x.PER_WORD; i += 4)
            store_words(to + i, x.word[i], x.word[i + 1], x.word[i + 2], x.word[i + 3]);
}
template <class T> DEVICE void put(const float (&v)[VECTOR], void *row, const span<false> &s) {
    shifted<T>(row, s.at, s.n).put(held_of<T>(v), thread_index() % s.lanes, s.lanes);
}

template <int G, int V, bool WHOLE, int B = SIMT_THREADS> struct group {
    static constexpr int SIZE = G, VECTORS = V;
    static constexpr bool whole = WHOLE;
    /* whatever row the host gives it (simt_row_group, norm_fit) */
    static constexpr bool ONE_PIECE = WHOLE && G < ROW_MOST;
    static constexpr int THREADS = G <= 32 ? B : G; /* of a block */
    static constexpr int ROWS = THREADS / G;        /* of a block */
    static constexpr int PIECE = G * V * VECTOR;
    using lane = span<WHOLE>;
    using index = typename lane::index;
    template <class T> using raw = held<T, VECTOR>[V];

    static DEVICE int number() { return ROWS > 1 ? thread_index() / G : 0; } /* among the block's groups */
    static DEVICE int64_t row() { return block_index() * ROWS + number(); }
    static DEVICE int rank() { return thread_index() % G; }
    static DEVICE lane place(int v, index at, index n) {
        const index first = at + (v * G + rank()) * VECTOR;
        if constexpr (WHOLE)
            return { first, n };
        else
            return { first, n, G < WARP ? G : WARP };
    }

    /* Body(v, l) for each vector v of the group in the piece that begins at `at` of a row of n;
     * l: where the thread's own is. */
    template <class Body> static DEVICE void each(index at, index n, const Body &body) {
#pragma unroll
        for (int v = 0; v < V; v++)
            if (at + v * G * VECTOR < n) body(v, place(v, at, n));
    }

    /* N vectors of a piece from number `first` on, all asked for before any is looked at; fetch_any(): of WHOLE rows
     * those beyond it may be any, others are 0. */
    template <class T, int N>
    static DEVICE void fetch_any(held<T, VECTOR> (&x)[N], const void *row, int first, index at, index n) {
        if constexpr (WHOLE) {
#pragma unroll
            for (int i = 0; i < N; i++) x[i] = ::fetch_any<T>(row, place(first + i, at, n));
        } else {
            const auto vector = [&](int i) { return shifted<T>(row, place(first + i, at, n).at, n); };
            /* of registers */
            constexpr int ROOM = (G < ROW_MOST ? 4 : 2) * 2 / (int)sizeof(typename T::bits),
                          AT_ONCE = N < ROOM ? N : ROOM;
            static_assert(N % AT_ONCE == 0, "all vectors");
#pragma unroll
            for (int i = 0; i < N; i += AT_ONCE) {
                typename shifted<T>::pieces pieces[AT_ONCE];
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) pieces[j] = vector(i + j).ask();
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) x[i + j] = vector(i + j).take(pieces[j]);
            }
#pragma unroll
            for (int i = 0; i < N; i++)
                if (!vector(i).inner()) x[i] = vector(i).gather();
        }
    }
    template <class T, int N>
    static DEVICE void fetch(held<T, VECTOR> (&x)[N], const void *row, int first, index at, index n) {
        if constexpr (WHOLE)
#pragma unroll
            for (int i = 0; i < N; i++) x[i] = ::fetch<T>(row, place(first + i, at, n));
        else
            fetch_any<T>(x, row, first, at, n);
    }
    template <class T> static DEVICE void load(raw<T> &x, const void *row, index at, index n) {
        fetch<T>(x, row, 0, at, n);
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
DEVICE float vector_squares(const float (&x)[VECTOR / 2]) {
    return fused(x[1], x[1], x[0] * x[0]) + fused(x[3], x[3], x[2] * x[2]);
}
DEVICE float vector_sum(const float (&x)[VECTOR]) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}
DEVICE float vector_squares(const float (&x)[VECTOR]) {
    const float a = fused(x[1], x[1], x[0] * x[0]), b = fused(x[3], x[3], x[2] * x[2]),
                c = fused(x[5], x[5], x[4] * x[4]), d = fused(x[7], x[7], x[6] * x[6]);
    return (a + b) + (c + d);
}

/* Where a row begins. */
template <class T> DEVICE typename T::bits *row_at(const simt_rows &r, int64_t i) {
    return (typename T::bits *)r.data + i * r.row;
}
template <class T> DEVICE typename T::bits *row_at(const simt_rows &r, int64_t batch, int64_t i) {
    return row_at<T>(r, i) + batch * r.batch;
}

/* How many of n elements are visible in row i of s under a causal mask, which is aligned bottom-right. */
DEVICE int64_t visible(bool causal, int64_t i, int64_t s, int64_t n) {
    return !causal ? n : i + n - s + 1 > 0 ? i + n - s + 1 : 0;
}

/* The entries <op>[_ragged]_<type>_<G> of a row op that holds one row at a time, or two: 1024 threads have 64 registers
 * each, 512 have 128. Code for rows that are not WHOLE is long: an op whose sums do not depend on it holds one vector
 * of them (V). <op>_held() says how many blocks of whole rows an SM must hold, at least. */
constexpr int row_threads(int g) { return g <= 32 ? (int)SIMT_THREADS : g; }
#define ROW_ENTRY_WHOLE(op, params, T, G) \
    ENTRY_ASKING(op##_##T##_##G, row_threads(G), op##_held<T>(row_threads(G)), params) { \
        op##_row<T, group<G, ROW_VECTORS, true>>(p); \
    }
#define ROW_ENTRY(op, params, V, T, G) \
    ROW_ENTRY_WHOLE(op, params, T, G) \
    ENTRY(op##_ragged_##T##_##G, row_threads(G), params) { op##_row<T, group<G, V, false>>(p); }
#define ROW_ENTRIES_MOST(op, params, V, T) \
    ROW_ENTRY(op, params, V, T, 8) \
    ROW_ENTRY(op, params, V, T, 32) \
    ROW_ENTRY(op, params, V, T, 128) \
    ROW_ENTRY(op, params, V, T, 256) \
    ROW_ENTRY(op, params, V, T, 512)
#define ROW_ENTRIES_2(op, params, V, T) ROW_ENTRIES_MOST(op, params, V, T) ROW_ENTRY(op, params, V, T, 64)
#define ROW_ENTRIES_STREAM(op, params, V, T) ROW_ENTRIES_MOST(op, params, V, T) ROW_ENTRY(op, params, V, T, 1024)
#define ROW_ENTRIES_1(op, params, V, T) ROW_ENTRIES_2(op, params, V, T) ROW_ENTRY(op, params, V, T, 1024)

#endif
