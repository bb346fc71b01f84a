/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of a row on devices, from the sums of its logits, and its gradient, from its lse.
 * A label out of range makes both NaN. */
#ifndef TRINE_SIMT_CROSS_ENTROPY_GRADIENT_H
#define TRINE_SIMT_CROSS_ENTROPY_GRADIENT_H

#include "cross_entropy.h"
#include "backends/simt/core/math.h"
#include "backends/simt/core/row.h"

/* An origin for f x as large as any that is finite, so that Inf - Inf does not come: +Inf among the logits then makes
 * the sum Inf, and nothing but -Inf 0. */
DEVICE float most_origin() { return 0.5f * f32::largest(); }
DEVICE float to_origin(float x) { return x > most_origin() ? most_origin() : x < -most_origin() ? -most_origin() : x; }

/* Of the logits of a thread, or of a row, with d = f x - origin: sum 2^(base2 d); and if there is smoothing 2^-32 sum
 * d, which does not overflow, and their number. The difference comes first: it is 0 at the largest logit whatever its
 * size. */
struct logit_sums {
    float origin, sum, total, count;
};
DEVICE logit_sums no_logits() { return { -most_origin(), 0, 0, 0 }; }
constexpr float TOTAL_UNIT = 0x1p-32f;

/* By an origin that is no smaller. */
DEVICE void move_origin(logit_sums &s, const cross_entropy_params &p, float origin) {
    s.sum *= exp2_approx((s.origin - origin) * p.base2);
    if (p.smoothing > 0) s.total = fused(s.count * TOTAL_UNIT, s.origin - origin, s.total);
    s.origin = origin;
}

/* Of a group of threads, from those of each: all but the sum. */
template <int G> DEVICE void group_origin(logit_sums &s, const cross_entropy_params &p) {
    const float origin = group_max<G>(s.origin);
    if (s.origin != origin) move_origin(s, p, origin);
    if (p.smoothing > 0) {
        const two smoothed = group_sum<G>(two{ s.total, s.count });
        s.total = smoothed.a, s.count = smoothed.b;
    }
}
template <int G> DEVICE logit_sums group_logits(logit_sums s, const cross_entropy_params &p) {
    group_origin<G>(s, p);
    s.sum = group_sum<G>(s.sum);
    return s;
}

/* log sum exp z, in float64, which costs nothing here. */
DEVICE double lse_of(const cross_entropy_params &p, const logit_sums &s) {
    return (double)s.origin * p.unit + log_of(s.sum);
}

DEVICE bool is_class(const cross_entropy_params &p, int64_t label) { return label >= 0 && label < p.v; }

/* How a row's label counts: its weight w, and all of the row, m = (1-e) w + (e/v) sum_k w_k. Where targets are smooth
 * and classes weighted cross_entropy_weighted.h has both; else they are the same. */
struct label_weight {
    double w, m;
};
DEVICE label_weight weight_of(const cross_entropy_params &p, int64_t label) {
    const float w = p.weights && is_class(p, label) ? p.weights[label] : 1.0f;
    return { w, w };
}

/* A term whose factor is 0 is left out: it might be 0 times Inf. `at_label`: the logit there. Logits count by their
 * distance from the origin, of which `total` is the sum, by the weights of their classes. */
DEVICE float loss_of(const cross_entropy_params &p, int64_t label, float at_label, const logit_sums &s,
                     const label_weight &weight, double total) {
    if (label == p.ignore) return 0;
    if (!is_class(p, label)) return not_a_number();
    double loss =
        weight.m * log_of(s.sum) + (1 - p.smoothing) * weight.w * (p.unit * ((double)s.origin - p.f * at_label));
    if (p.smoothing > 0) loss -= p.smoothing * (p.unit * total / (double)p.v);
    if (p.z_loss > 0) loss += p.z_loss * lse_of(p, s) * lse_of(p, s);
    return (float)loss;
}

DEVICE void loss_store(const cross_entropy_params &p, int64_t row, int64_t label, float at_label, const logit_sums &s,
                       const label_weight &weight, double total) {
    if (p.lse.data) store_one<f32>(p.lse.data, row, (float)lse_of(p, s));
    store_one<f32>(p.loss.data, row, loss_of(p, label, at_label, s, weight, total));
}
DEVICE void loss_store(const cross_entropy_params &p, int64_t row, int64_t label, float at_label, const logit_sums &s) {
    loss_store(p, row, label, at_label, s, weight_of(p, label), (double)s.total / TOTAL_UNIT);
}

/* What the gradients of a row's logits share: gain (2^(base2 (f x - origin)) factor - target). */
struct row_gradient {
    int64_t label;
    float origin, gain, factor, at_label; /* the target there */
    bool ignored;
};

/* Probabilities are powers times `inverse`, by this origin. */
DEVICE row_gradient gradient_of(const cross_entropy_params &p, int64_t row, int64_t label, const label_weight &weight,
                                float origin, float inverse, double lse) {
    const float dloss = p.dloss.data ? load_one<f32>(p.dloss.data, row * p.dloss_step) : 1.0f;
    return {
        label,
        origin,
        is_class(p, label) ? dloss * p.scale : not_a_number(),
        (p.z_loss > 0 ? (float)(weight.m + 2.0 * p.z_loss * lse) : (float)weight.m) * inverse, /* not m + 0 * Inf */
        p.at_label * (float)weight.w,
        label == p.ignore,
    };
}
DEVICE row_gradient gradient_of(const cross_entropy_params &p, int64_t row, int64_t label, const label_weight &weight,
                                const logit_sums &s) {
    return gradient_of(p, row, label, weight, s.origin, 1 / s.sum, lse_of(p, s));
}
DEVICE row_gradient gradient_of(const cross_entropy_params &p, int64_t row, int64_t label, const logit_sums &s) {
    return gradient_of(p, row, label, weight_of(p, label), s);
}

/* From the saved lse: the origin is what is nearest, and the factor makes good what that is off by. */
DEVICE row_gradient gradient_of(const cross_entropy_params &p, int64_t row, int64_t label, const label_weight &weight,
                                float lse) {
    const float origin = to_origin(lse * p.per_unit);
    return gradient_of(p, row, label, weight, origin, exp2_approx(fused(origin, p.unit, -lse) * LOG2E), lse);
}

DEVICE float gradient_at(const cross_entropy_params &p, const row_gradient &g, float x, float target) {
    return g.gain * fused(exp2_approx(fused(x, p.f, -g.origin) * p.base2), g.factor, -target);
}

/* Gradients are of the logits' type, or NARROW: bf16 or f16 where those are f32, which one function knows at run time;
 * both are 16 bits, and stored as bf16. */
template <class T, bool NARROW> struct gradient_type {
    using type = T;
};
template <class T> struct gradient_type<T, true> {
    using type = bf16;
};

template <class T, bool NARROW, int N>
DEVICE held<typename gradient_type<T, NARROW>::type, N> gradient_held(const cross_entropy_params &p,
                                                                      const float (&d)[N]) {
    held<typename gradient_type<T, NARROW>::type, N> x = held_of<typename gradient_type<T, NARROW>::type>(d);
    if constexpr (NARROW)
        if (p.to == LOSS_F16) {
            const held<f16, N> y = held_of<f16>(d);
#pragma unroll
            for (int i = 0; i < N / y.PER_WORD; i++) x.word[i] = y.word[i];
        }
    return x;
}
template <class T, bool NARROW>
DEVICE typename gradient_type<T, NARROW>::type::bits gradient_bits(const cross_entropy_params &p, float d) {
    if constexpr (NARROW)
        if (p.to == LOSS_F16) return f16::put(d);
    return gradient_type<T, NARROW>::type::put(d);
}
template <class T, bool NARROW>
DEVICE typename gradient_type<T, NARROW>::type::bits *gradient_row(const cross_entropy_params &p, int64_t row) {
    return row_at<typename gradient_type<T, NARROW>::type>(p.dlogits, row);
}

/* A vector of a row. */
template <class T, bool NARROW>
DEVICE void gradient_put(const cross_entropy_params &p, const float (&d)[VECTOR], int64_t row, const span<true> &s) {
    if (s.at < s.n) store_whole(gradient_held<T, NARROW>(p, d).word, gradient_row<T, NARROW>(p, row) + s.at);
}
template <class T, bool NARROW>
DEVICE void gradient_put(const cross_entropy_params &p, const float (&d)[VECTOR], int64_t row, const span<false> &s) {
    const shifted<typename gradient_type<T, NARROW>::type> to(gradient_row<T, NARROW>(p, row), s.at, s.n);
    to.put(gradient_held<T, NARROW>(p, d), thread_index() % s.lanes, s.lanes);
}

/* A logit, f x, added to what came before; */
DEVICE void logit_sums_add(logit_sums &s, const cross_entropy_params &p, float x) {
    const float origin = to_origin(x);
    if (origin > s.origin) move_origin(s, p, origin);
    s.sum += exp2_approx((x - s.origin) * p.base2);
    if (p.smoothing > 0) {
        s.total = fused(x - s.origin, TOTAL_UNIT, s.total);
        s.count++;
    }
}

/* and the logits x of a piece. */
template <class Group>
DEVICE void logit_sums_add(logit_sums &s, const cross_entropy_params &p, float (&x)[Group::VECTORS][VECTOR],
                           typename Group::index at, typename Group::index n) {
    float max = -infinity();
    Group::each(at, n, [&](int v, const typename Group::lane &l) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            x[v][k] = inside(l, k) ? product(x[v][k], p.f) : -infinity();
            max = larger(max, x[v][k]);
        }
    });
    max = to_origin(max);
    if (max > s.origin) move_origin(s, p, max);
    Group::each(at, n, [&](int v, const typename Group::lane &) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) s.sum += exp2_approx((x[v][k] - s.origin) * p.base2);
    });
    if (p.smoothing > 0)
        Group::each(at, n, [&](int v, const typename Group::lane &l) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                if (inside(l, k)) s.total = fused(x[v][k] - s.origin, TOTAL_UNIT, s.total);
            int count = 0;
#pragma unroll
            for (int k = 0; k < VECTOR; k++) count += inside(l, k);
            s.count += (float)count;
        });
}

/* Of a piece of a row. */
template <class T, bool NARROW, class Group>
DEVICE void gradient_write(const cross_entropy_params &p, const row_gradient &g, int64_t row,
                           const typename Group::template raw<T> &x, typename Group::index at,
                           typename Group::index n) {
    Group::each(at, n, [&](int v, const typename Group::lane &l) {
        const int64_t distance = g.label - l.at;
        const int at_label = distance >= 0 && distance < VECTOR ? (int)distance : -1;
        float d[VECTOR];
#pragma unroll
        for (int k = 0; k < VECTOR; k++)
            d[k] = g.ignored ? 0.0f : gradient_at(p, g, x[v].get(k), k == at_label ? g.at_label : p.spread);
        gradient_put<T, NARROW>(p, d, row, l);
    });
}

/* The gradients of a row that a group reads twice, from its end to its beginning the second time, but for the last
 * piece. Between(sums, at_label) comes between; one thread has read `at_label`, the others have 0, and once another has
 * the sum it has been read, and may be overwritten. */
template <class T, bool NARROW, class Group, class Between>
DEVICE void logit_gradient_row(const cross_entropy_params &p, int64_t row, int64_t label, float at_label,
                               const Between &between) {
    using index = typename Group::index;
    const index n = (index)p.v;
    const typename T::bits *logits = row_at<T>(p.logits, row);
    logit_sums own = no_logits();
    typename Group::template raw<T> bits;
    index at = 0;
    for (; at < n; at += Group::PIECE) {
        float x[Group::VECTORS][VECTOR];
        Group::template load<T>(bits, logits, at, n);
#pragma unroll
        for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) x[v][k] = bits[v].get(k);
        logit_sums_add<Group>(own, p, x, at, n);
    }
    group_origin<Group::SIZE>(own, p);
    const two sums = group_sum<Group::SIZE>(two{ own.sum, at_label });
    own.sum = sums.a;
    between(own, sums.b);
    const row_gradient g = gradient_of(p, row, label, own);
    for (at -= Group::PIECE; at >= 0; at -= Group::PIECE) {
        if (at + Group::PIECE < n) Group::template load<T>(bits, logits, at, n);
        gradient_write<T, NARROW, Group>(p, g, row, bits, at, n);
    }
}

#endif
