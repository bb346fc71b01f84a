/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of a row on devices, from the sums of its logits, and its gradient, from its lse. A label out of range makes both NaN. */
#ifndef TRINE_SIMT_CROSS_ENTROPY_GRADIENT_H
#define TRINE_SIMT_CROSS_ENTROPY_GRADIENT_H

#include "cross_entropy.h"
#include "backends/simt/core/math.h"
#include "backends/simt/core/row.h"

/* A finite number to subtract, so that Inf - Inf does not come: +Inf among the logits then makes the sum Inf, and nothing but -Inf 0. */
DEVICE float to_finite(float x) { return x > f32::largest() ? f32::largest() : x < -f32::largest() ? -f32::largest() : x; }

/* Of the logits z = scale x of a thread, or of a row: sum 2^(log2(e) z - origin), and the sum of x. */
struct logit_sums {
    float origin, sum, total;
};

/* The sum by an origin that is no smaller. */
DEVICE float moved_sum(const logit_sums &s, float origin) { return s.origin == origin ? s.sum : s.sum * exp2_approx(s.origin - origin); }

/* In float64, which costs nothing here. */
DEVICE double lse_of(const logit_sums &s) { return s.origin * 0.69314718055994531 + log_of(s.sum); }

DEVICE bool is_class(const cross_entropy_params &p, int64_t label) { return label >= 0 && label < p.v; }

/* A term whose weight is 0 is left out: it might be 0 times Inf. `at_label`: the logit there. */
DEVICE float loss_of(const cross_entropy_params &p, int64_t label, float at_label, const logit_sums &s) {
    if (label == p.ignore) return 0;
    if (!is_class(p, label)) return not_a_number();
    const double lse = lse_of(s);
    double loss = lse - (1 - p.smoothing) * ((double)p.scale * at_label);
    if (p.smoothing > 0) loss -= p.smoothing * (p.scale * (double)s.total / (double)p.v);
    if (p.z_loss > 0) loss += p.z_loss * lse * lse;
    return (float)loss;
}

DEVICE void loss_store(const cross_entropy_params &p, int64_t row, int64_t label, float at_label, const logit_sums &s) {
    if (p.lse.data) store_one<f32>(p.lse.data, row, (float)lse_of(s));
    store_one<f32>(p.loss.data, row, loss_of(p, label, at_label, s));
}

/* What the gradients of a row's logits share: gain (2^(base2 x - lse) factor - target), lse being of base 2. */
struct row_gradient {
    int64_t label;
    float lse, gain, factor;
    bool ignored;
};

DEVICE row_gradient gradient_of(const cross_entropy_params &p, int64_t row, int64_t label, float lse) {
    const float dloss = p.dloss.data ? load_one<f32>(p.dloss.data, row * p.dloss_step) : 1.0f;
    return {
        label,
        (float)(lse * 1.4426950408889634),
        is_class(p, label) ? dloss * p.scale : not_a_number(),
        p.z_loss > 0 ? fused(p.twice_z_loss, lse, 1.0f) : 1.0f, /* not 1 + 0 * Inf */
        label == p.ignore,
    };
}

DEVICE float gradient_at(const cross_entropy_params &p, const row_gradient &g, float x, float target) {
    return g.gain * fused(exp2_approx(fused(x, p.base2, -g.lse)), g.factor, -target);
}

/* Of a piece of a row. */
template <class T, class Group>
DEVICE void gradient_write(const cross_entropy_params &p, const row_gradient &g, int64_t row, const typename Group::template raw<T> &x,
                           typename Group::index at, typename Group::index n) {
    Group::each(at, n, [&](int v, const typename Group::lane &l) {
        const int64_t distance = g.label - l.at;
        const int at_label = distance >= 0 && distance < VECTOR ? (int)distance : -1;
        float d[VECTOR];
#pragma unroll
        for (int k = 0; k < VECTOR; k++) d[k] = g.ignored ? 0.0f : gradient_at(p, g, x[v].get(k), k == at_label ? p.at_label : p.spread);
        put<T>(d, row_at<T>(p.dlogits, row), l);
    });
}

#endif
