/* SPDX-License-Identifier: Apache-2.0 */
/* softmax of rows through shared memory: each thread takes powers by the largest of its own elements, and brings them to the row's when it writes them. */
#ifndef TRINE_CUDA_SOFTMAX_RING_H
#define TRINE_CUDA_SOFTMAX_RING_H

#include "backends/simt/softmax.inl.h"
#include "ring.h"

/* Of one largest element and another: what a sum of powers is multiplied by. */
DEVICE float softmax_factor(const softmax_params &p, float from, float origin) { return exp2_approx((from - origin) * p.spread); }

template <class T, int CHUNKS> DEVICE void softmax_ring(const softmax_params &p) {
    using rows = ring<T, 1, CHUNKS, 1>;
    const simt_rows from[1] = { p.x };
    for (rows r(p.ring, from, p.rows, p.n); r.row < p.rows; r.next()) {
        float h[CHUNKS][rows::ITEMS], own = -infinity(), sum = 0;
        r.wait();
        r.each([&](int v) {
            const typename rows::chunk x = r.get(v);
            const int left = r.left(v);
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) {
                h[v][k] = k < left ? x.get(k) * p.f : -infinity();
                own = larger(own, h[v][k]);
            }
            r.refill(v);
        });
        const float base = softmax_origin(own);
        r.each([&](int v) {
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) h[v][k] = exp2_approx((h[v][k] - base) * p.spread);
            sum += chunk_sum(h[v]);
        });
        const float warp = group_max<WARP>(own);
        const two *const given = r.meet({ warp, group_sum<WARP>(sum * softmax_factor(p, base, softmax_origin(warp))) });
        float max = -infinity(), total = 0;
        for (int i = thread_index() % WARP; i < r.blocks * rows::WARPS; i += WARP) max = larger(max, given[i].a);
        max = group_max<WARP>(max);
        const float origin = softmax_origin(max);
        for (int i = thread_index() % WARP; i < r.blocks * rows::WARPS; i += WARP) total += given[i].b * softmax_factor(p, softmax_origin(given[i].a), origin);
        const float scale = softmax_factor(p, base, origin) / group_sum<WARP>(total);
        r.each([&](int v) {
#pragma unroll
            for (int k = 0; k < rows::ITEMS; k++) h[v][k] *= scale;
            r.template put<T>(row_at<T>(p.y, r.row), v, h[v]);
        });
    }
}

#endif
