/* SPDX-License-Identifier: Apache-2.0 */
/* hash_encode_backward on devices: what each corner of each place gives is written down with its row, sorted by rows as
 * scatter_add_rows sorts (backends/simt/reduce/scatter.inl.h), and summed, a thread having a row.
 *
 * NOTES. Floor: dy once, dtable once, and of each corner its row and its share four times, for the sort by three
 * digits; atomic additions would need none of these and have no order. */
#include "backends/simt/reduce/scatter.inl.h"
#include "grid.inl.h"

template <class T, int D> DEVICE void hash_encode_hits(const grid_params &p) {
    const int64_t unit = block_index() * SIMT_THREADS + thread_index();
    if (unit >= p.n * p.l) return;
    const int64_t level = quotient_below(p.n * p.l, unit, p.places), i = unit - level * p.n;
    const grid_level v(p, level, D);
    const grid_place<D> place(p, v, i);
    const bool none = v.m == 0 || place.astray;
    float dy[GRID_FEATURES];
    grid_load<T>(dy, p.y.data, i * p.y.batch + level * p.y.row, p.f);
#pragma unroll
    for (int q = 0; q < 1 << D; q++) {
        const int64_t hit = (unit << D) + q;
        p.row[hit] = (int32_t)(none ? p.e : v.first + place.row(v, q));
        const float w = place.weight(q);
#pragma unroll
        for (int k = 0; k < GRID_FEATURES; k++)
            if (k < p.f) p.part[hit * p.f + k] = w * dy[k];
    }
}

template <class T, int D> DEVICE void hash_encode_slopes(const grid_params &p) {
    const int64_t i = block_index() * SIMT_THREADS + thread_index();
    if (i >= p.n) return;
    float dx[D] = {};
    bool astray = false, lost = false;
    for (int64_t level = 0; level < p.l; level++) {
        const grid_level v(p, level, D);
        const grid_place<D> place(p, v, i);
        lost |= v.astray;
        float dy[GRID_FEATURES], sum[D] = {};
        grid_load<T>(dy, p.y.data, i * p.y.batch + level * p.y.row, p.f);
        for (int q = 0; v.m > 0 && q < 1 << D; q++) {
            float x[GRID_FEATURES], inner = 0;
            grid_load<T>(x, p.table.data, (v.first + place.row(v, q)) * p.table.row, p.f);
#pragma unroll
            for (int k = 0; k < GRID_FEATURES; k++) inner = fused(x[k], dy[k], inner);
#pragma unroll
            for (int axis = 0; axis < D; axis++) sum[axis] = fused(place.weight(q, axis), inner, sum[axis]);
        }
#pragma unroll
        for (int axis = 0; axis < D; axis++) dx[axis] = fused(place.slope[axis], sum[axis], dx[axis]);
    }
#pragma unroll
    for (int axis = 0; axis < D; axis++) {
        const float x = ((const float *)p.x.data)[i * p.x.row + axis];
        astray |= x != x;
        dx[axis] = x < 0.0f || x > 1.0f ? 0.0f : dx[axis];
    }
#pragma unroll
    for (int axis = 0; axis < D; axis++)
        ((float *)p.dx.data)[i * p.dx.row + axis] = astray || lost ? not_a_number() : dx[axis];
}

/* A row's sum: of its hits, or of the sums of the chunks that they are in. */
template <class T> DEVICE void hash_encode_sum(const scatter_params &p) {
    const int64_t row = block_index() * SIMT_THREADS + thread_index();
    if (row >= p.v) return;
    const lane l = { 0, p.n, false };
    const int64_t first = p.first[row], end = p.end[row];
    float sum[VECTOR] = {};
    if (first / SUM_CHUNK == (end - 1) / SUM_CHUNK) {
        add_tokens<f32, false>(sum, p, l, first, end);
    } else {
        for (int64_t chunk = first / SUM_CHUNK; chunk * SUM_CHUNK < end; chunk++) {
            float part[VECTOR];
            load<f32>(part, p.partial + (2 * chunk + (chunk * SUM_CHUNK < first)) * p.n, l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) sum[k] += part[k];
        }
    }
    store<T>(sum, row_at<T>(p.y, row), l);
}

ENTRY(hash_encode_backward_count, SIMT_THREADS, scatter_params) { scatter_count(p); }
ENTRY(hash_encode_backward_sort, SIMT_THREADS, scatter_params) { scatter_sort(p); }
SCATTER_CHUNKS(hash_encode_backward, f32)
#define HASH_ENCODE_BACKWARD_OF(T, D) \
    ENTRY(hash_encode_backward_hits_##T##_##D, SIMT_THREADS, grid_params) { hash_encode_hits<T, D>(p); } \
    ENTRY(hash_encode_backward_slopes_##T##_##D, SIMT_THREADS, grid_params) { hash_encode_slopes<T, D>(p); }
#define HASH_ENCODE_BACKWARD(T) \
    HASH_ENCODE_BACKWARD_OF(T, 2) \
    HASH_ENCODE_BACKWARD_OF(T, 3) \
    HASH_ENCODE_BACKWARD_OF(T, 4) \
    ENTRY(hash_encode_backward_sum_##T, SIMT_THREADS, scatter_params) { hash_encode_sum<T>(p); }
HASH_ENCODE_BACKWARD(f32)
HASH_ENCODE_BACKWARD(bf16)
HASH_ENCODE_BACKWARD(f16)
