/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm of rows through shared memory, without residuals or dropout, with a weight of x's type, of which each thread holds its columns. */
#ifndef TRINE_CUDA_NORM_RING_H
#define TRINE_CUDA_NORM_RING_H

#include "backends/simt/norm_rows.h"
#include "ring.h"

/* The sum of the thread's h, or of their squares. */
template <bool CENTERED, class Rows> DEVICE float norm_ring_sum(const Rows &r) {
    float sum = 0;
    r.each([&](int v) {
        const typename Rows::chunk x = r.get(v);
        float h[Rows::ITEMS];
#pragma unroll
        for (int k = 0; k < Rows::ITEMS; k++) h[k] = x.get(k);
        sum += CENTERED ? chunk_sum(h) : chunk_squares(h);
    });
    return sum;
}

/* The sums of h - origin and of its squares. */
template <class Rows> DEVICE two norm_ring_center(const Rows &r, float origin) {
    two sums = { 0, 0 };
    r.each([&](int v) {
        const typename Rows::chunk x = r.get(v);
        const int left = r.left(v);
        const float from = left > 0 ? origin : 0.0f;
        float h[Rows::ITEMS];
#pragma unroll
        for (int k = 0; k < Rows::ITEMS; k++) h[k] = x.get(k) - from;
        if (!r.whole)
#pragma unroll
            for (int k = 0; k < Rows::ITEMS; k++) h[k] = k < left ? h[k] : 0.0f;
        sums = sums + two{ chunk_sum(h), chunk_squares(h) };
    });
    return sums;
}

/* Keeps the compiler from unpacking before the rows' loop what is held packed: that takes twice the registers. */
template <class Chunk> DEVICE void norm_ring_stay(Chunk &c) {
#pragma unroll
    for (uint32_t &word : c.word) asm volatile("" : "+r"(word));
}

template <bool CENTERED, class T, int CHUNKS, int HELD> DEVICE void norm_ring(const norm_params &p) {
    using rows = ring<T, 1, CHUNKS, HELD>;
    using chunk = typename rows::chunk;
    const simt_rows from[1] = { p.x };
    rows r(p.ring, from, p.rows, p.n);
    chunk weight[CHUNKS] = {}, bias[CHUNKS] = {};
#pragma unroll
    for (int v = 0; v < CHUNKS; v++) {
        if (p.weight.data) weight[v] = r.read(p.weight.data, v);
        if (CENTERED && p.bias.data) bias[v] = r.read(p.bias.data, v);
    }
    const float inverse = 1.0f / (float)p.n;
    for (; r.row < p.rows; r.next()) {
        r.wait();
        const float mean = r.sum(norm_ring_sum<CENTERED>(r)) * inverse;
        norm_statistics s = {};
        if (CENTERED)
            s = norm_centered(r.sum(norm_ring_center(r, mean)), mean, inverse, p.eps);
        else
            s.rstd = 1 / square_root(mean + p.eps);
        if (thread_index() == 0 && r.first == 0) {
            if (p.mean.data) store_one<f32>(p.mean.data, r.row, s.mean);
            if (p.rstd.data) store_one<f32>(p.rstd.data, r.row, s.rstd);
        }
        r.each([&](int v) {
            const chunk x = r.get(v);
            float y[rows::ITEMS];
            norm_ring_stay(weight[v]);
            if (CENTERED) norm_ring_stay(bias[v]);
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) y[k] = CENTERED ? fused(x.get(k) - s.origin, s.rstd, s.lift) : x.get(k) * s.rstd;
            if (p.round)
#pragma unroll
                for (int k = 0; k < rows::ITEMS; k++) y[k] = rounded<T>(y[k]);
            if (p.weight.data)
#pragma unroll
                for (int k = 0; k < rows::ITEMS; k++) y[k] *= weight[v].get(k) + p.weight_offset;
            if (CENTERED && p.bias.data)
#pragma unroll
                for (int k = 0; k < rows::ITEMS; k++) y[k] += bias[v].get(k);
            r.template put<T>(row_at<T>(p.y, r.row), v, y);
            r.refill(v);
        });
    }
}

#define NORM_RING(op, CENTERED, T, CHUNKS, HELD) \
    ENTRY_HELD(op##_ring_##T##_##CHUNKS, SIMT_RING_THREADS, HELD, norm_params) { norm_ring<CENTERED, T, CHUNKS, HELD>(p); }

#endif
