/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a group of G threads works on together: what softmax, the norms, the losses and the sums share.
 *
 * A row is taken in pieces of G times 32 elements, of which each thread holds up to 4 vectors in registers between the steps of an op; a row of one piece is
 * then read once. A longer row is read again for each step, mostly from the second-level cache. A group is a part of a warp for short rows, so that shuffles
 * suffice and a block has several rows, and a whole block for long ones. */
#ifndef TRINE_SIMT_ROW_H
#define TRINE_SIMT_ROW_H

#include "params.h"
#include "simt.h"

enum { ROW_VECTORS = 4 };

template <int G, int V = ROW_VECTORS> struct group {
    static constexpr int SIZE = G, VECTORS = V;
    static constexpr int THREADS = G <= 32 ? SIMT_THREADS : G; /* of a block */
    static constexpr int ROWS = THREADS / G;                   /* of a block */
    static constexpr int PIECE = G * V * VECTOR;

    static DEVICE int64_t row() { return block_index() * ROWS + thread_index() / G; }
    static DEVICE int rank() { return thread_index() % G; }

    /* Body(v, l) for each vector v of the group in the piece that begins at `at` of a row of n; l: where the thread's own is. */
    template <class Body> static DEVICE void each(int64_t at, int64_t n, bool aligned, const Body &body) {
#pragma unroll
        for (int v = 0; v < V; v++)
            if (at + v * G * VECTOR < n) body(v, lane{ at + (int64_t)(v * G + rank()) * VECTOR, n, aligned });
    }
};

/* Where a row begins. */
template <class T> DEVICE typename T::bits *row_at(const simt_rows &r, int64_t i) { return (typename T::bits *)r.data + i * r.row; }
template <class T> DEVICE typename T::bits *row_at(const simt_rows &r, int64_t batch, int64_t i) { return row_at<T>(r, i) + batch * r.batch; }

/* How many of n elements are visible in row i of s under a causal mask, which is aligned bottom-right. */
DEVICE int64_t visible(bool causal, int64_t i, int64_t s, int64_t n) { return !causal ? n : i + n - s + 1 > 0 ? i + n - s + 1 : 0; }

/* The entries <op>_<type>_<G> of a row op that holds one row at a time, or two: 1024 threads have 64 registers each, 512 have 128. */
#define ROW_ENTRY(op, params, G, T) \
    ENTRY(op##_##T##_##G, group<G>::THREADS, params) { op##_row<T, group<G>>(p); }
#define ROW_ENTRIES(op, params, T) ROW_ENTRY(op, params, 8, T) ROW_ENTRY(op, params, 32, T) ROW_ENTRY(op, params, 128, T) ROW_ENTRY(op, params, 256, T)
#define ROW_ENTRIES_1(op, params, T) ROW_ENTRIES(op, params, T) ROW_ENTRY(op, params, 1024, T)
#define ROW_ENTRIES_2(op, params, T) ROW_ENTRIES(op, params, T) ROW_ENTRY(op, params, 512, T)

#endif
