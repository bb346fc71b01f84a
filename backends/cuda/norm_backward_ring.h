/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward and layer_norm_backward of rows through shared memory, all of one type, without gradients of residuals or dropout. Each thread sums dweight
 * and dbias of its columns over the rows of its cluster; the weight lies behind the ring.
 *
 * NOTES. Floors: dy and h read once, dx written; 9 flops an element for rms_norm, 13 for layer_norm. On an H200, where copying moves 4.27 TB/s: 3.5 to 4.1 TB/s
 * where rows fill their blocks, 2.6 where three of eight chunks are empty (layer_norm, bf16, 20480). */
#ifndef TRINE_CUDA_NORM_BACKWARD_RING_H
#define TRINE_CUDA_NORM_BACKWARD_RING_H

#include "backends/simt/norm_backward_rows.h"
#include "ring.h"

/* g = (weight + offset) dy and xhat of a chunk. */
template <bool CENTERED, class Rows> struct norm_ring_terms {
    float dy[Rows::ITEMS], g[Rows::ITEMS], hat[Rows::ITEMS];
    DEVICE norm_ring_terms(const Rows &r, const norm_backward_params &p, const norm_saved &s, const typename Rows::chunk *weight, int v) {
        const typename Rows::chunk from = r.get(v, 0), h = r.get(v, 1), w = weight[v * Rows::THREADS + thread_index()];
#pragma unroll
        for (int k = 0; k < Rows::ITEMS; k++) {
            dy[k] = from.get(k);
            g[k] = p.weight.data ? dy[k] * (w.get(k) + p.weight_offset) : dy[k];
            hat[k] = (CENTERED ? h.get(k) - s.mean : h.get(k)) * s.rstd;
        }
    }
};

template <bool CENTERED, class T, int CHUNKS> DEVICE void norm_backward_ring(const norm_backward_params &p) {
    using rows = ring<T, 2, CHUNKS, 1>;
    using chunk = typename rows::chunk;
    using terms = norm_ring_terms<CENTERED, rows>;
    const simt_rows from[2] = { p.dy, p.h };
    rows r(p.ring, from, p.rows, p.n);
    chunk *const weight = (chunk *)(launch_memory() + SIMT_RING_BYTES);
#pragma unroll
    for (int v = 0; v < CHUNKS; v++)
        if (p.weight.data) weight[v * rows::THREADS + thread_index()] = r.read(p.weight.data, v);
    const float inverse = 1.0f / (float)p.n;
    float dweight[CHUNKS][rows::ITEMS] = {}, dbias[CHUNKS][rows::ITEMS] = {};
    norm_saved ahead = norm_saved_of<CENTERED>(p, r.row);
    for (; r.row < p.rows; r.next()) {
        const norm_saved s = ahead;
        if (r.row + r.step < p.rows) ahead = norm_saved_of<CENTERED>(p, r.row + r.step);
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
    const int64_t cluster = block_index() / r.blocks;
#pragma unroll
    for (int v = 0; v < CHUNKS; v++) {
        if (p.weight_partial) r.template put<f32>((uint32_t *)p.weight_partial + cluster * p.n, v, dweight[v]);
        if (CENTERED && p.bias_partial) r.template put<f32>((uint32_t *)p.bias_partial + cluster * p.n, v, dbias[v]);
    }
}

#define NORM_BACKWARD_RING(op, CENTERED, T) \
    ENTRY_HELD(op##_ring_##T##_4, SIMT_RING_THREADS, 1, norm_backward_params) { norm_backward_ring<CENTERED, T, 4>(p); }

#endif
