/* SPDX-License-Identifier: Apache-2.0 */
/* argmax on devices. Of elements whose orders are equal the first is taken, so that it does not matter who looks at
 * which.
 *
 * NOTES. Floor: x once, and so it is read. A short row has the 32 threads of a group, others a block, or if there are
 * few rows a block for each part and another launch that compares these. */
#include "argmax.h"
#include "order.inl.h"

struct argmax_better {
    DEVICE argmax_best operator()(const argmax_best &a, const argmax_best &b) const {
        return b.order > a.order || (b.order == a.order && b.at < a.at) ? b : a;
    }
};

/* Of the elements first .. end-1 of a row, for each thread of a group; for none a place behind all. */
template <class T, int G>
DEVICE argmax_best argmax_of(const argmax_params &p, const typename T::bits *row, int64_t first, int64_t end) {
    argmax_best best = { 0, 0, INT64_MAX };
#pragma unroll 2
    for (int64_t at = first + thread_index() % G * VECTOR; at < end; at += G * VECTOR) {
        const lane l = { at, end, p.wide };
        float x[VECTOR];
        load<T>(x, row, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            const uint32_t order = order_of(x[k], p.smallest);
            if (within(l, k) && (order > best.order || best.at == INT64_MAX)) best = { order, 0, at + k };
        }
    }
    return group_combine<G>(best, argmax_better());
}

template <class T> DEVICE void argmax_put(const argmax_params &p, int64_t row, int64_t at) {
    if (p.long_indices)
        ((int64_t *)p.indices)[row] = at;
    else
        ((int32_t *)p.indices)[row] = (int32_t)at;
    using bits = typename T::bits;
    if (p.values) ((bits *)p.values)[row] = ((const bits *)p.x.data + row * p.x.row)[at];
}

template <class T> DEVICE const typename T::bits *argmax_row(const argmax_params &p, int64_t row) {
    return (const typename T::bits *)p.x.data + row * p.x.row;
}

/* A part of a row. */
template <class T> DEVICE void argmax(const argmax_params &p) {
    const int64_t row = block_index() / p.parts, first = block_index() % p.parts * p.part,
                  end = first + p.part < p.n ? first + p.part : p.n;
    const argmax_best best = argmax_of<T, SIMT_THREADS>(p, argmax_row<T>(p, row), first, end);
    if (thread_index() != 0) return;
    if (p.parts > 1)
        p.best[block_index()] = best;
    else
        argmax_put<T>(p, row, best.at);
}

template <class T> DEVICE void argmax_parts(const argmax_params &p) {
    const int64_t row = block_index();
    argmax_best best = { 0, 0, INT64_MAX };
    for (int64_t part = thread_index(); part < p.parts; part += SIMT_THREADS)
        best = argmax_better()(best, p.best[row * p.parts + part]);
    best = group_combine<SIMT_THREADS>(best, argmax_better());
    if (thread_index() == 0) argmax_put<T>(p, row, best.at);
}

template <class T> DEVICE void argmax_short(const argmax_params &p) {
    const int64_t row = block_index() * (SIMT_THREADS / ARGMAX_GROUP) + thread_index() / ARGMAX_GROUP;
    const bool there = row < p.r;
    const argmax_best best = argmax_of<T, ARGMAX_GROUP>(p, argmax_row<T>(p, there ? row : 0), 0, there ? p.n : 0);
    if (there && thread_index() % ARGMAX_GROUP == 0) argmax_put<T>(p, row, best.at);
}

#define ARGMAX(T) \
    ENTRY(argmax_##T, SIMT_THREADS, argmax_params) { argmax<T>(p); } \
    ENTRY(argmax_parts_##T, SIMT_THREADS, argmax_params) { argmax_parts<T>(p); } \
    ENTRY(argmax_short_##T, SIMT_THREADS, argmax_params) { argmax_short<T>(p); }
ARGMAX(f32)
ARGMAX(bf16)
ARGMAX(f16)
