/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy with its gradient, of rows in shared memory.
 *
 * NOTES. Floor: logits once and dlogits once; 2 exponentials and about 14 other instructions for each.
 * Predicted: 45 % of what an SM issues at copying's rate, so that memory binds: 90 % of copy.
 * Measured, H200, rows of bf16: 93 to 96 % of copy for 2048 to 50304 logits, 98 % for 128256 in four blocks. Blocks
 * that stay, and ask for the next row as they write: 87 and 83 % for 32000 and 128256. Rows copied by TMA:
 * as fast in one block, less in several. 1024 threads for 32000: 87 %. */
#ifndef TRINE_CUDA_CROSS_ENTROPY_PARTS_H
#define TRINE_CUDA_CROSS_ENTROPY_PARTS_H

#include "backends/simt/loss/cross_entropy_gradient.h"
#include "backends/cuda/core/row_part.h"

/* The sums of the thread's logits. */
template <class Part> DEVICE logit_sums logit_part_sums(const Part &part, const cross_entropy_params &p) {
    logit_sums s = no_logits();
    part.each([&](int i) {
        float x[Part::ITEMS], max = -infinity(), sum = 0;
        part.get(x, i);
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k++) {
            x[k] = part.whole || part.in(i + k) ? product(x[k], p.f) : -infinity();
            max = larger(max, x[k]);
        }
        max = to_origin(max);
        if (max > s.origin) move_origin(s, p, max);
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k++) x[k] -= s.origin;
        if (p.smoothing > 0)
#pragma unroll
            for (int k = 0; k < Part::ITEMS; k++)
                if (part.whole || part.in(i + k)) {
                    s.total = fused(x[k], TOTAL_UNIT, s.total);
                    s.count++;
                }
#pragma unroll
        for (int k = 0; k < Part::ITEMS; k += 2) sum += exp2_approx(x[k] * p.base2) + exp2_approx(x[k + 1] * p.base2);
        s.sum += sum;
    });
    return s;
}

/* The gradients of a piece; of a whole one as if no element had the label, which is number `here` of the part. */
template <class T, bool NARROW, class Part>
DEVICE held<typename gradient_type<T, NARROW>::type, Part::ITEMS> logit_part_gradient(const Part &part,
                                                                                      const cross_entropy_params &p,
                                                                                      const row_gradient &g, int i,
                                                                                      int here) {
    float d[Part::ITEMS];
    part.get(d, i);
#pragma unroll
    for (int k = 0; k < Part::ITEMS; k++)
        d[k] = gradient_at(p, g, d[k], !part.whole && i + k == here ? g.at_label : p.spread);
    auto y = gradient_held<T, NARROW>(p, d);
#pragma unroll
    for (uint32_t &word : y.word) word = g.ignored ? 0 : word;
    return y;
}
template <class T, bool NARROW, class Part, int G> DEVICE void logit_parts(const cross_entropy_params &p) {
    const int64_t row = cluster_index();
    const Part part(p.part, p.v);
    part.ask(row_at<T>(p.logits, row));
    const row_blocks blocks(p.part);
    const int64_t label = load_integer(p.labels.data, p.long_labels, row), distance = label - part.first;
    const int here = distance >= 0 && distance < part.n ? (int)distance : -1;
    const bool mine = part.mine(here), finishes = is_class(p, label) ? mine : part.first == 0 && thread_index() == 0;
    copy_wait<0>();
    const float at_label = mine ? T::get(part.memory()[here]) : 0.0f;
    const logit_sums of_block = group_logits<G>(logit_part_sums(part, p), p);
    const logit_sums s = group_logits<blocks.MOST>(blocks.exchange(of_block, no_logits()), p);
    if (finishes) loss_store(p, row, label, at_label, s);
    const row_gradient g = gradient_of(p, row, label, s);
    auto *const to = gradient_row<T, NARROW>(p, row);
    part.each([&](int i) {
        part.template put<typename gradient_type<T, NARROW>::type>(to, i,
                                                                   logit_part_gradient<T, NARROW>(part, p, g, i, here));
    });
    /* After its piece, which other threads store if it is not whole. */
    if (part.whole && mine && !g.ignored)
        *(volatile typename gradient_type<T, NARROW>::type::bits *)(to + label) =
            gradient_bits<T, NARROW>(p, gradient_at(p, g, at_label, g.at_label));
}

template <class T, class Part, int G> DEVICE void cross_entropy_parts(const cross_entropy_params &p) {
    logit_parts<T, false, Part, G>(p);
}
template <class T, class Part, int G> DEVICE void cross_entropy_narrow_parts(const cross_entropy_params &p) {
    logit_parts<T, true, Part, G>(p);
}

#endif
