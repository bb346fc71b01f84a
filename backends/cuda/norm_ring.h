/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm of rows through shared memory, without residuals or dropout, with a weight of x's type. */
#ifndef TRINE_CUDA_NORM_RING_H
#define TRINE_CUDA_NORM_RING_H

#include "backends/simt/norm_rows.h"
#include "ring.h"

/* The sum of h, or of its squares. */
template <bool CENTERED, class Rows> DEVICE float norm_ring_sum(const Rows &r) {
    float sum = 0;
    r.each_pair([&](const float(&h)[2][VECTOR], const bool(&)[2][VECTOR]) {
        sum += CENTERED ? vector_sum(h[0]) + vector_sum(h[1]) : vector_squares(h[0]) + vector_squares(h[1]);
    });
    return sum;
}

/* The sums of h - origin and of its squares. */
template <class Rows> DEVICE two norm_ring_center(const Rows &r, float origin) {
    two sums = { 0, 0 };
    r.each_pair([&](float(&h)[2][VECTOR], const bool(&in)[2][VECTOR]) {
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[i][k] -= in[i][k] ? origin : 0.0f;
        sums = sums + two{ vector_sum(h[0]) + vector_sum(h[1]), vector_squares(h[0]) + vector_squares(h[1]) };
    });
    return sums;
}

template <bool CENTERED, class T, class Rows> DEVICE void norm_ring_write(const Rows &r, const norm_params &p, const norm_statistics &s) {
    constexpr int STEP = 2;
    r.template each<STEP>([&](int v, const typename Rows::chunk(&x)[STEP]) {
        typename Rows::chunk weight[STEP], bias[STEP];
        if (p.weight.data)
#pragma unroll
            for (int i = 0; i < STEP; i++) weight[i] = r.read(p.weight.data, 0, v + i);
        if (CENTERED && p.bias.data)
#pragma unroll
            for (int i = 0; i < STEP; i++) bias[i] = r.read(p.bias.data, 0, v + i);
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            float y[Rows::ITEMS];
#pragma unroll
            for (int k = 0; k < Rows::ITEMS; k++) y[k] = CENTERED ? fused(x[i].get(k) - s.origin, s.rstd, s.lift) : x[i].get(k) * s.rstd;
            if (p.round)
#pragma unroll
                for (int k = 0; k < Rows::ITEMS; k++) y[k] = rounded<T>(y[k]);
            if (p.weight.data)
#pragma unroll
                for (int k = 0; k < Rows::ITEMS; k++) y[k] *= weight[i].get(k) + p.weight_offset;
            if (CENTERED && p.bias.data)
#pragma unroll
                for (int k = 0; k < Rows::ITEMS; k++) y[k] += bias[i].get(k);
            r.put(p.y, v + i, y);
            r.refill(v + i);
        }
    });
}

template <bool CENTERED, class T, int G> DEVICE void norm_ring(const norm_params &p) {
    using rows = ring<T, G>;
    const float inverse = 1.0f / (float)p.n;
    for (rows r(p.ring, p.x, p.rows, p.n); r.row < p.rows; r.next()) {
        r.wait();
        const float mean = group_sum<G>(norm_ring_sum<CENTERED>(r)) * inverse;
        norm_statistics s = {};
        if (CENTERED)
            s = norm_centered(group_sum<G>(norm_ring_center(r, mean)), mean, inverse, p.eps);
        else
            s.rstd = 1 / square_root(mean + p.eps);
        if (thread_index() == 0) {
            if (p.mean.data) store_one<f32>(p.mean.data, r.row, s.mean);
            if (p.rstd.data) store_one<f32>(p.rstd.data, r.row, s.rstd);
        }
        norm_ring_write<CENTERED, T>(r, p, s);
    }
}

#define NORM_RING(op, CENTERED, T, G) \
    ENTRY(op##_ring_##T##_##G, G, norm_params) { norm_ring<CENTERED, T, G>(p); }
#define NORM_RINGS(op, CENTERED, T) NORM_RING(op, CENTERED, T, 512) NORM_RING(op, CENTERED, T, 1024)
#define NORM_RING_ENTRIES(op, CENTERED) NORM_RINGS(op, CENTERED, f32) NORM_RINGS(op, CENTERED, bf16) NORM_RINGS(op, CENTERED, f16)

#endif
