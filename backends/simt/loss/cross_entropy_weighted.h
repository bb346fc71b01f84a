/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of cross_entropy on devices whose classes are weighted and whose targets are smooth: each by a block, an element
 * at a time, of types that are known at run time. Every class has a target of its own, so that a row reads the weights
 * as often as the logits; they stay in the L2 cache. */
#ifndef TRINE_SIMT_CROSS_ENTROPY_WEIGHTED_H
#define TRINE_SIMT_CROSS_ENTROPY_WEIGHTED_H

#include "cross_entropy_gradient.h"

DEVICE float logit_at(const cross_entropy_params &p, int64_t row, int64_t k) {
    const int64_t at = row * p.logits.row + k;
    return p.from == LOSS_F32    ? load_one<f32>(p.logits.data, at)
           : p.from == LOSS_BF16 ? load_one<bf16>(p.logits.data, at)
                                 : load_one<f16>(p.logits.data, at);
}

/* Of the classes of a thread, or of a row, with d = f x - origin: sum w d and sum w. In float64: weights may be of any
 * size and sign. */
struct weighted_sums {
    double total, mass;
    DEVICE friend weighted_sums operator+(const weighted_sums &x, const weighted_sums &y) {
        return { x.total + y.total, x.mass + y.mass };
    }
};

DEVICE void move_origin(logit_sums &s, weighted_sums &w, const cross_entropy_params &p, float origin) {
    w.total += w.mass * ((double)s.origin - origin);
    move_origin(s, p, origin);
}

/* The sums of a row's logits and weights; `logits`: those alone of which the latter are wanted, none. */
DEVICE weighted_sums weighted_row_sums(const cross_entropy_params &p, int64_t row, bool logits, logit_sums &s) {
    weighted_sums w = {};
    s = no_logits();
    for (int64_t k = thread_index(); k < p.v; k += SIMT_THREADS) {
        const float weight = p.weights[k];
        if (logits) {
            const float x = product(logit_at(p, row, k), p.f), origin = to_origin(x);
            if (origin > s.origin) move_origin(s, w, p, origin);
            s.sum += exp2_approx((x - s.origin) * p.base2);
            w.total += (double)weight * ((double)x - s.origin);
        }
        w.mass += weight;
    }
    if (logits) {
        move_origin(s, w, p, group_max<SIMT_THREADS>(s.origin));
        s.sum = group_sum<SIMT_THREADS>(s.sum);
    }
    return group_sum<SIMT_THREADS>(w);
}

DEVICE label_weight weighted_label(const cross_entropy_params &p, int64_t label, const weighted_sums &sums) {
    const double w = weight_of(p, label).w;
    return { w, (1 - p.smoothing) * w + p.smoothing / (double)p.v * sums.mass };
}

DEVICE void weighted_gradients(const cross_entropy_params &p, int64_t row, const row_gradient &g) {
    for (int64_t k = thread_index(); k < p.v; k += SIMT_THREADS) {
        const float target = k == g.label ? g.at_label : p.spread * p.weights[k];
        const float d = g.ignored ? 0.0f : gradient_at(p, g, logit_at(p, row, k), target);
        if (p.to == LOSS_F32)
            gradient_row<f32, false>(p, row)[k] = f32::put(d);
        else
            gradient_row<f32, true>(p, row)[k] = gradient_bits<f32, true>(p, d);
    }
}

/* One thread reads the label's logit, which the gradient may overwrite, before any has the sums. */
DEVICE void cross_entropy_weighted_row(const cross_entropy_params &p) {
    const int64_t row = block_index(), label = load_integer(p.labels.data, p.long_labels, row);
    const float at_label = thread_index() == 0 && is_class(p, label) ? logit_at(p, row, label) : 0.0f;
    logit_sums s;
    const weighted_sums w = weighted_row_sums(p, row, true, s);
    const label_weight weight = weighted_label(p, label, w);
    if (thread_index() == 0) loss_store(p, row, label, at_label, s, weight, w.total);
    if (p.dlogits.data) weighted_gradients(p, row, gradient_of(p, row, label, weight, s));
}

DEVICE void cross_entropy_backward_weighted_row(const cross_entropy_params &p) {
    const int64_t row = block_index(), label = load_integer(p.labels.data, p.long_labels, row);
    const float lse = load_one<f32>(p.lse.data, row);
    const bool coarse = magnitude(lse) >= COARSE_LSE;
    logit_sums s;
    const weighted_sums w = weighted_row_sums(p, row, coarse, s);
    const label_weight weight = weighted_label(p, label, w);
    weighted_gradients(p, row,
                       coarse ? gradient_of(p, row, label, weight, s) : gradient_of(p, row, label, weight, lse));
}

#endif
