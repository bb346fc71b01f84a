/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward of rows through shared memory. */
#ifndef TRINE_CUDA_SOFTMAX_BACKWARD_RING_H
#define TRINE_CUDA_SOFTMAX_BACKWARD_RING_H

#include "backends/simt/softmax_backward.inl.h"
#include "ring.h"

template <class T, int CHUNKS> DEVICE void softmax_backward_ring(const softmax_backward_params &p) {
    using rows = ring<T, 2, CHUNKS, SIMT_RING_THREADS>;
    using chunk = typename rows::chunk;
    const simt_rows from[2] = { p.y, p.dy };
    for (rows r(p.ring, from, p.rows, p.n); r.row < p.rows; r.next()) {
        float sum = 0;
        r.wait();
        r.each([&](int v) {
            const chunk y = r.get(v, 0), dy = r.get(v, 1);
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) sum = fused(y.get(k), dy.get(k), sum);
        });
        sum = r.sum(sum);
        r.each([&](int v) {
            const chunk y = r.get(v, 0), dy = r.get(v, 1);
            float dx[rows::ITEMS];
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) dx[k] = y.get(k) * (dy.get(k) - sum) * p.scale;
            r.template put<T>(row_at<T>(p.dx, r.row), v, dx);
            r.refill(v);
        });
    }
}

#endif
