/* SPDX-License-Identifier: Apache-2.0 */
/* softmax of rows in shared memory: online statistics, then powers anew. */
#ifndef TRINE_CUDA_SOFTMAX_PARTS_H
#define TRINE_CUDA_SOFTMAX_PARTS_H

#include "backends/simt/norm/softmax.inl.h"
#include "backends/cuda/core/row_part.h"

/* Of one largest element and another: what a sum of powers is multiplied by. */
DEVICE float softmax_factor(const softmax_params &p, float from, float origin) {
    return exp2_approx((from - origin) * p.spread);
}

template <class T, class Part, int G> DEVICE void softmax_parts(const softmax_params &p) {
    const int64_t row = cluster_index();
    const Part part(p.part, p.n);
    part.ask(row_at<T>(p.x, row));
    const row_blocks blocks(p.part);
    float own = -infinity(), sum = 0;
    part.template each_come<Part::template TURNS<1>>([&](int i) {
        float h[Part::ITEMS], max = own;
        part.get(h, i);
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k++) {
            h[k] = part.whole || part.in(i + k) ? h[k] * p.f : -infinity();
            max = larger(max, h[k]);
        }
        const float origin = softmax_origin(max);
        if (max > own) {
            sum *= softmax_factor(p, own, origin);
            own = max;
        }
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k++) h[k] = exp2_approx((h[k] - origin) * p.spread);
        sum += vector_sum(h);
    });
    const float max = group_max<G>(own);
    float origin = softmax_origin(max), total = group_sum<G>(sum * softmax_factor(p, own, origin));
    if (blocks.size > 1) {
        const two their = blocks.exchange(two{ max, total }, two{ -infinity(), 0 });
        origin = softmax_origin(group_max<blocks.MOST>(their.a));
        total = group_sum<blocks.MOST>(their.b * softmax_factor(p, their.a, origin));
    }
    const float inverse = 1 / total;
    typename T::bits *to = row_at<T>(p.y, row);
    keep_address(to);
    const auto write = [&](const auto &power) {
        part.each([&](int i) {
            float h[Part::ITEMS];
            part.get(h, i);
#pragma unroll
            for (int k = 0; k < Part::ITEMS; k++) h[k] = power(h[k]);
            part.put(to, i, held_of<T>(h));
        });
    };
    /* One instruction less for each element, where what rounding takes from the product with the largest is small
     * enough to be made good. */
    const float shift = origin * p.spread, f = p.f * p.spread;
    if (magnitude(shift) < 0x1p24f) {
        const float factor = inverse * exp2_approx(-fused(origin, p.spread, -shift));
        write([&](float x) { return exp2_approx(fused(x, f, -shift)) * factor; });
    } else {
        write([&](float x) { return exp2_approx((x * p.f - origin) * p.spread) * inverse; });
    }
}

#endif
