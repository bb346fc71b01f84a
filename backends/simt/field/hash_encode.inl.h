/* SPDX-License-Identifier: Apache-2.0 */
/* hash_encode on devices: a thread has a place in a level, its neighbours the next places, so that a level's table is
 * read by threads that run at the same time.
 *
 * NOTES. Floor: x once a level, y once, and 2^d rows of features a place and level, of 32 bytes at least, from L2 while
 * the level's table fits. */
#include "grid.inl.h"

template <class T, int D> DEVICE void hash_encode(const grid_params &p) {
    const int64_t unit = block_index() * SIMT_THREADS + thread_index();
    if (unit >= p.n * p.l) return;
    const int64_t level = quotient_below(p.n * p.l, unit, p.places), i = unit - level * p.n;
    const grid_level v(p, level, D);
    const grid_place<D> place(p, v, i);
    float y[GRID_FEATURES] = {};
    if (v.m > 0) {
#pragma unroll
        for (int q = 0; q < 1 << D; q++) {
            float x[GRID_FEATURES];
            grid_load<T>(x, p.table.data, (v.first + place.row(v, q)) * p.table.row, p.f);
            const float w = place.weight(q);
#pragma unroll
            for (int k = 0; k < GRID_FEATURES; k++) y[k] = fused(w, x[k], y[k]);
        }
    }
    const int64_t at = i * p.y.batch + level * p.y.row;
#pragma unroll
    for (int k = 0; k < GRID_FEATURES; k++)
        if (k < p.f) store_one<T>(p.y.data, at + k, place.astray || v.astray ? not_a_number() : y[k]);
}

#define HASH_ENCODE(T) \
    ENTRY(hash_encode_##T##_2, SIMT_THREADS, grid_params) { hash_encode<T, 2>(p); } \
    ENTRY(hash_encode_##T##_3, SIMT_THREADS, grid_params) { hash_encode<T, 3>(p); } \
    ENTRY(hash_encode_##T##_4, SIMT_THREADS, grid_params) { hash_encode<T, 4>(p); }
HASH_ENCODE(f32)
HASH_ENCODE(bf16)
HASH_ENCODE(f16)
