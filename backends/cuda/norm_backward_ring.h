/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward and layer_norm_backward of rows through shared memory, all of one type, without gradients of residuals or dropout. Each thread sums dweight
 * and dbias of its columns over the rows of its cluster. Where it has 16 of f32 it keeps the weight, and g and xhat until the row's sums are known; of more, the
 * weight lies behind the ring, and they are computed anew.
 *
 * NOTES. Floors: dy and h read once, dx written; 9 flops an element for rms_norm, 13 for layer_norm. On an H200, where copying moves 4.27 TB/s: 3.8 to 4.1 TB/s
 * on f32; 3.4 to 3.9 on bf16 where rows fill their blocks, 2.6 where three of eight chunks are empty (layer_norm, bf16, 20480). */
#ifndef TRINE_CUDA_NORM_BACKWARD_RING_H
#define TRINE_CUDA_NORM_BACKWARD_RING_H

#include "backends/simt/norm_backward_rows.h"
#include "ring.h"

/* What a row saved. `turns` is 0, but the compiler must not know that all threads ask for the same: it would keep that in a uniform register, and wait for it at
 * once (bf16 at 8192: 3.2 TB/s instead of 4.0). */
template <bool CENTERED> DEVICE norm_saved norm_ring_saved(const norm_backward_params &p, int64_t row) {
    return norm_saved_of<CENTERED>(p, row + thread_index() * (int)p.turns);
}

/* g = (weight + offset) dy and xhat of a chunk. */
template <bool CENTERED, class Rows> struct norm_ring_terms {
    float dy[Rows::ITEMS], g[Rows::ITEMS], hat[Rows::ITEMS];
    DEVICE norm_ring_terms(const Rows &r, const norm_backward_params &p, const norm_saved &s, const typename Rows::chunk *weight, int v) {
        const typename Rows::chunk from = r.get(v, 0), h = r.get(v, 1), w = weight[v * SIMT_RING_THREADS + thread_index()];
#pragma unroll
        for (int k = 0; k < Rows::ITEMS; k++) {
            dy[k] = from.get(k);
            g[k] = p.weight.data ? dy[k] * (w.get(k) + p.weight_offset) : dy[k];
            hat[k] = (CENTERED ? h.get(k) - s.mean : h.get(k)) * s.rstd;
        }
    }
};

/* The cluster's sums of the thread's columns. */
template <bool CENTERED, class Rows, int CHUNKS>
DEVICE void norm_backward_store(const norm_backward_params &p, const Rows &r, const float (&dweight)[CHUNKS][Rows::ITEMS],
                                const float (&dbias)[CHUNKS][Rows::ITEMS]) {
    const int64_t cluster = block_index() / r.blocks;
#pragma unroll
    for (int v = 0; v < CHUNKS; v++) {
        if (p.weight_partial) r.template put<f32>((uint32_t *)p.weight_partial + cluster * p.n, v, dweight[v]);
        if (CENTERED && p.bias_partial) r.template put<f32>((uint32_t *)p.bias_partial + cluster * p.n, v, dbias[v]);
    }
}

template <bool CENTERED, class T, int CHUNKS> DEVICE void norm_backward_anew(const norm_backward_params &p) {
    using rows = ring<T, 2, CHUNKS, SIMT_RING_THREADS>;
    using chunk = typename rows::chunk;
    using terms = norm_ring_terms<CENTERED, rows>;
    const simt_rows from[2] = { p.dy, p.h };
    rows r(p.ring, from, p.rows, p.n);
    chunk *const weight = (chunk *)(launch_memory() + SIMT_RING_BYTES);
#pragma unroll
    for (int v = 0; v < CHUNKS; v++)
        if (p.weight.data) weight[v * SIMT_RING_THREADS + thread_index()] = r.read(p.weight.data, v);
    const float inverse = 1.0f / (float)p.n;
    float dweight[CHUNKS][rows::ITEMS] = {}, dbias[CHUNKS][rows::ITEMS] = {};
    norm_saved ahead = norm_ring_saved<CENTERED>(p, r.row);
    for (; r.row < p.rows; r.next()) {
        const norm_saved s = ahead;
        if (r.row + r.step < p.rows) ahead = norm_ring_saved<CENTERED>(p, r.row + r.step);
        two sums = { 0, 0 };
        r.wait();
#pragma unroll
        for (int v = 0; v < CHUNKS; v++) {
            const terms t(r, p, s, weight, v);
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) {
                dweight[v][k] = fused(t.dy[k], t.hat[k], dweight[v][k]);
                if (CENTERED) dbias[v][k] += t.dy[k];
                if (CENTERED) sums.a += t.g[k];
                sums.b = fused(t.g[k], t.hat[k], sums.b);
            }
        }
        sums = r.sum(sums);
        const float c1 = sums.a * inverse, c2 = sums.b * inverse;
#pragma unroll
        for (int v = 0; v < CHUNKS; v++) {
            const terms t(r, p, s, weight, v);
            float dx[rows::ITEMS];
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) dx[k] = (CENTERED ? t.g[k] - c1 - t.hat[k] * c2 : t.g[k] - t.hat[k] * c2) * s.rstd;
            r.template put<T>(row_at<T>(p.dx, r.row), v, dx);
            r.refill(v);
        }
    }
    norm_backward_store<CENTERED>(p, r, dweight, dbias);
}

/* A sum of products, by two chains. */
template <int N> DEVICE float vector_dot(const float (&x)[N], const float (&y)[N]) {
    float a = x[0] * y[0], b = x[1] * y[1];
#pragma unroll
    for (int k = 2; k < N; k += 2) {
        a = fused(x[k], y[k], a);
        b = fused(x[k + 1], y[k + 1], b);
    }
    return a + b;
}

template <bool CENTERED, class T, int CHUNKS, int THREADS> DEVICE void norm_backward_kept(const norm_backward_params &p) {
    using rows = ring<T, 2, CHUNKS, THREADS>;
    using chunk = typename rows::chunk;
    const simt_rows from[2] = { p.dy, p.h };
    rows r(p.ring, from, p.rows, p.n);
    float weight[CHUNKS][rows::ITEMS];
#pragma unroll
    for (int v = 0; v < CHUNKS; v++) {
        const chunk w = p.weight.data ? r.read(p.weight.data, v) : chunk{};
#pragma unroll
        for (int k = 0; k < rows::ITEMS; k++) weight[v][k] = p.weight.data ? w.get(k) + p.weight_offset : 1.0f;
    }
    const float inverse = 1.0f / (float)p.n;
    float dweight[CHUNKS][rows::ITEMS] = {}, dbias[CHUNKS][rows::ITEMS] = {};
    norm_saved ahead = norm_ring_saved<CENTERED>(p, r.row);
    for (; r.row < p.rows; r.next()) {
        const norm_saved s = ahead;
        if (r.row + r.step < p.rows) ahead = norm_ring_saved<CENTERED>(p, r.row + r.step);
        float g[CHUNKS][rows::ITEMS], hat[CHUNKS][rows::ITEMS];
        two sums = { 0, 0 };
        r.wait();
#pragma unroll
        for (int v = 0; v < CHUNKS; v++) {
            const chunk dy = r.get(v, 0), h = r.get(v, 1);
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) {
                g[v][k] = dy.get(k) * weight[v][k];
                hat[v][k] = (CENTERED ? h.get(k) - s.mean : h.get(k)) * s.rstd;
                dweight[v][k] = fused(dy.get(k), hat[v][k], dweight[v][k]);
                if (CENTERED) dbias[v][k] += dy.get(k);
            }
            r.refill(v);
            sums = sums + two{ CENTERED ? vector_sum(g[v]) : 0.0f, vector_dot(g[v], hat[v]) };
        }
        sums = CENTERED ? r.sum(sums) : two{ 0, r.sum(sums.b) };
        const float c1 = sums.a * inverse, c2 = sums.b * inverse;
#pragma unroll
        for (int v = 0; v < CHUNKS; v++) {
            float dx[rows::ITEMS];
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) dx[k] = fused(-hat[v][k], c2, CENTERED ? g[v][k] - c1 : g[v][k]) * s.rstd;
            r.template put<T>(row_at<T>(p.dx, r.row), v, dx);
        }
    }
    norm_backward_store<CENTERED>(p, r, dweight, dbias);
}

/* Entries <op>_ring_<T>_<chunks of a block>. */
#define NORM_BACKWARD_KEPT(op, CENTERED, T, CHUNKS, THREADS, VARIANT) \
    ENTRY_HELD(op##_ring_##T##_##VARIANT, THREADS, SIMT_RING_THREADS / THREADS, norm_backward_params) { norm_backward_kept<CENTERED, T, CHUNKS, THREADS>(p); }
#define NORM_BACKWARD_RINGS(op, CENTERED) \
    NORM_BACKWARD_KEPT(op, CENTERED, f32, 2, 128, 256) \
    NORM_BACKWARD_KEPT(op, CENTERED, f32, 2, 256, 512) \
    NORM_BACKWARD_KEPT(op, CENTERED, f32, 2, 512, 1024) \
    ENTRY_HELD(op##_ring_f32_2048, SIMT_RING_THREADS, 1, norm_backward_params) { \
        if constexpr (CENTERED) \
            norm_backward_anew<CENTERED, f32, 4>(p); /* registers do not suffice */ \
        else \
            norm_backward_kept<CENTERED, f32, 4, SIMT_RING_THREADS>(p); \
    } \
    ENTRY_HELD(op##_ring_bf16_2048, SIMT_RING_THREADS, 1, norm_backward_params) { norm_backward_anew<CENTERED, bf16, 4>(p); } \
    ENTRY_HELD(op##_ring_f16_2048, SIMT_RING_THREADS, 1, norm_backward_params) { norm_backward_anew<CENTERED, f16, 4>(p); }

#endif
