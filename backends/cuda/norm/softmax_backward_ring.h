/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward of rows through shared memory. */
#ifndef TRINE_CUDA_SOFTMAX_BACKWARD_RING_H
#define TRINE_CUDA_SOFTMAX_BACKWARD_RING_H

#include "backends/simt/norm/softmax_backward.inl.h"
#include "backends/cuda/core/ring.h"

template <class T, int CHUNKS, bool WHOLE> DEVICE void softmax_backward_ring(const softmax_backward_params &p) {
    using rows = ring<CHUNKS, SIMT_RING_THREADS, WHOLE, RING_NEAR, T, T>;
    using chunk = held<T, rows::ITEMS>;
    const simt_rows from[2] = { p.y, p.dy };
    ring_bare bare;
    rows r(p.ring, from, p.rows, p.n, bare);
    r.template each_row<float>(
        bare,
        [&](ring_bare::state &, int stage, const typename rows::request &) {
            float sum = 0;
            r.used_chunks([&](auto chunks) {
#pragma unroll
                for (int v = 0; v < chunks.COUNT; v++) {
                    const chunk y = r.template get<0>(v, stage), dy = r.template get<1>(v, stage);
#pragma unroll
                    for (int k = 0; k < rows::ITEMS; k++) sum = fused(y.get(k), dy.get(k), sum);
                }
            });
            return sum;
        },
        [&](const ring_bare::state &, float sum) {
            r.used_chunks([&](auto chunks) {
#pragma unroll
                for (int v = 0; v < chunks.COUNT; v++) {
                    const chunk y = r.template get<0>(v, r.stage), dy = r.template get<1>(v, r.stage);
                    float dx[rows::ITEMS];
#pragma unroll
                    for (int k = 0; k < rows::ITEMS; k++) dx[k] = y.get(k) * (dy.get(k) - sum) * p.scale;
                    r.template put<T>(r.template mine<T>(p.dx), v, dx);
                    r.refill(v);
                }
            });
        });
}

#endif
