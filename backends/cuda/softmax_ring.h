/* SPDX-License-Identifier: Apache-2.0 */
/* softmax of rows through shared memory, by online statistics. */
#ifndef TRINE_CUDA_SOFTMAX_RING_H
#define TRINE_CUDA_SOFTMAX_RING_H

#include "backends/simt/softmax.inl.h"
#include "ring.h"

template <class T, int G> DEVICE void softmax_ring(const softmax_params &p) {
    using rows = ring<T, G>;
    constexpr int STEP = rows::STEP;
    for (rows r(p.ring, p.x, p.rows, p.n); r.row < p.rows; r.next()) {
        float own = -infinity(), sum = 0;
        r.wait();
        r.each_pair([&](float(&h)[2][VECTOR], const bool(&in)[2][VECTOR]) {
            const float old = own;
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int k = 0; k < VECTOR; k++) {
                    h[i][k] = in[i][k] ? h[i][k] * p.f : -infinity();
                    own = larger(own, h[i][k]);
                }
            if (own > old) sum *= exp2_approx((old - own) * p.spread);
            const float origin = softmax_origin(own);
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int k = 0; k < VECTOR; k++) h[i][k] = exp2_approx((h[i][k] - origin) * p.spread);
            sum += vector_sum(h[0]) + vector_sum(h[1]);
        });
        const float max = group_max<G>(own), origin = softmax_origin(max);
        if (own != max) sum *= exp2_approx((own - origin) * p.spread);
        const float inverse = 1 / group_sum<G>(sum);
        r.template each<STEP>([&](int v, const typename rows::chunk(&x)[STEP]) {
#pragma unroll
            for (int i = 0; i < STEP; i++) {
                float y[rows::ITEMS];
#pragma unroll
                for (int k = 0; k < rows::ITEMS; k++) y[k] = exp2_approx((x[i].get(k) * p.f - origin) * p.spread) * inverse;
                r.put(p.y, v + i, y);
                r.refill(v + i);
            }
        });
    }
}

#endif
