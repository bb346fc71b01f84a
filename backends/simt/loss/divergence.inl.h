/* SPDX-License-Identifier: Apache-2.0 */
/* Device side that kl_div, jsd and their gradients share: a group of G threads has a row, of logits the largest first,
 * then the sum of exponentials, then what is asked for.
 *
 * NOTES. Floor: both rows once. A row of logits is read three times, and four for jsd's gradient, all but the first
 * from L2. */
#ifndef TRINE_SIMT_DIVERGENCE_INL_H
#define TRINE_SIMT_DIVERGENCE_INL_H

#include "divergence.h"
#include "backends/simt/core/math.h"

#define NOTHING 0x1p-100f /* the terms of mixtures below are left out */

/* Of a logit x the logarithm is (x/2 - half) twice - log_sum. */
struct divergence_line {
    const void *x;
    row_kind kind;
    float half, twice, log_sum;

    DEVICE float distance(float x) const { return (x * 0.5f - half) * twice; }
};

struct one_class {
    float log, p;
};

/* e^x of any x. */
DEVICE float power_of(float x) {
    return x > 88.0f ? (x > 89.0f ? infinity() : exp_of(x - 1.0f) * 2.71828183f) : exp_of(x);
}

DEVICE one_class class_of(const divergence_line &r, float x) {
    if (r.kind == ROW_PROBABILITIES) return { x < 0 ? not_a_number() : log_of(x), x };
    const float l = r.kind == ROW_LOGITS ? r.distance(x) - r.log_sum : x;
    return { l, power_of(l) };
}

/* A probability that is 0 leaves the other factor out. */
DEVICE float class_part(float p, float l) { return p == 0 ? 0.0f : p * l; }

template <class T, int G> struct divergence_row {
    const divergence_params &p;
    int64_t row;
    int rank;
    bool aligned;

    DEVICE const void *at(const simt_rows &t) const { return (const typename T::bits *)t.data + row * t.row; }

    /* Body(l, x) for each vector of a row, and Body(l, x, y) of both. */
    template <class Body> DEVICE void each(const void *x, const Body &body) const {
        for (int64_t i = rank * VECTOR; i < p.v; i += G * VECTOR) {
            const lane l = { i, p.v, aligned };
            float v[VECTOR];
            load<T>(v, x, l);
            body(l, v);
        }
    }
    template <class Body> DEVICE void each(const divergence_line &x, const divergence_line &y, const Body &body) const {
        for (int64_t i = rank * VECTOR; i < p.v; i += G * VECTOR) {
            const lane l = { i, p.v, aligned };
            float v[VECTOR], w[VECTOR];
            load<T>(v, x.x, l);
            load<T>(w, y.x, l);
            body(l, v, w);
        }
    }

    DEVICE divergence_line line(const simt_rows &t, row_kind kind) const {
        divergence_line r = { at(t), kind, 0, p.twice, 0 };
        if (kind != ROW_LOGITS) return r;
        float most = -infinity(), sum = 0;
        each(r.x, [&](const lane &l, const float(&x)[VECTOR]) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                if (within(l, k)) most = larger(most, x[k]);
        });
        r.half = group_max<G>(most) * 0.5f;
        each(r.x, [&](const lane &l, const float(&x)[VECTOR]) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                if (within(l, k)) sum += exp_of(r.distance(x[k]));
        });
        r.log_sum = log_of(group_sum<G>(sum));
        return r;
    }

    DEVICE float mixture(const one_class &a, const one_class &q) const { return p.beta * a.p + (1.0f - p.beta) * q.p; }

    DEVICE float term(const one_class &a, const one_class &q) const {
        if (p.beta == 0) return class_part(a.p, a.log - q.log);
        if (p.beta == 1) return class_part(q.p, q.log - a.log);
        const float mix = mixture(a, q), log_m = log_of(mix);
        if (mix < NOTHING) return 0;
        return p.beta * class_part(a.p, a.log - log_m) + (1.0f - p.beta) * class_part(q.p, q.log - log_m);
    }

    /* log q - log m, or with beta 1 log q - log p; 0 where q is. */
    DEVICE float rho(const one_class &a, const one_class &q) const {
        if (q.p == 0) return 0;
        if (p.beta == 1) return q.log - a.log;
        const float mix = mixture(a, q);
        return mix < NOTHING ? 0.0f : q.log - log_of(mix);
    }

    DEVICE float loss() const {
        const divergence_line x = line(p.input, p.of_input), y = line(p.target, p.of_target);
        float sum = 0;
        each(x, y, [&](const lane &l, const float(&a)[VECTOR], const float(&b)[VECTOR]) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                if (within(l, k)) sum += term(class_of(y, b[k]), class_of(x, a[k]));
        });
        return group_sum<G>(sum);
    }

    /* What the gradient of a row has for a sum: of p, or of q rho, or of beta 1 and logarithms -1. */
    DEVICE float total(const divergence_line &x, const divergence_line &y) const {
        if (x.kind != ROW_LOGITS) return p.beta == 1 ? -1.0f : 0.0f;
        if (p.beta == 0 && y.kind == ROW_LOGITS) return 1.0f;
        float sum = 0;
        each(x, y, [&](const lane &l, const float(&a)[VECTOR], const float(&b)[VECTOR]) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                const one_class q = class_of(x, a[k]), c = class_of(y, b[k]);
                if (within(l, k)) sum += p.beta == 0 ? c.p : q.p * rho(c, q);
            }
        });
        return group_sum<G>(sum);
    }

    DEVICE void gradient(float gain) const {
        const divergence_line x = line(p.input, p.of_input), y = line(p.target, p.of_target);
        const float sum = total(x, y);
        void *to = const_cast<void *>(at(p.dinput));
        each(x, y, [&](const lane &l, const float(&a)[VECTOR], const float(&b)[VECTOR]) {
            float g[VECTOR];
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                const one_class q = class_of(x, a[k]), c = class_of(y, b[k]);
                if (p.beta > 0)
                    g[k] = gain * (q.p * (rho(c, q) - sum));
                else
                    g[k] = gain * (x.kind == ROW_LOGITS ? class_part(q.p, sum) - c.p : -c.p);
            }
            store<T>(g, to, l);
        });
    }

    DEVICE void clear() const {
        float zero[VECTOR] = {};
        for (int64_t i = rank * VECTOR; i < p.v; i += G * VECTOR)
            store<T>(zero, const_cast<void *>(at(p.dinput)), lane{ i, p.v, false });
    }
};

/* The row of a group, if there is one, and its weight. */
template <class T, int G, class Body> DEVICE void divergence_each_row(const divergence_params &p, const Body &body) {
    divergence_row<T, G> r = { p, block_index() * (SIMT_THREADS / G) + thread_index() / G, thread_index() % G, false };
    if (r.row >= p.rows) return;
    r.aligned = ((uintptr_t)r.at(p.input) | (uintptr_t)r.at(p.target)) % 16 == 0 &&
                (!p.dinput.data || (uintptr_t)r.at(p.dinput) % 16 == 0);
    body(r, p.weight ? p.weight[r.row] : 1.0f);
}

template <class T, int G> DEVICE void divergence_loss(const divergence_params &p) {
    divergence_each_row<T, G>(p, [&](const divergence_row<T, G> &r, float w) {
        const float loss = w == 0 ? 0.0f : w * r.loss();
        if (r.rank == 0) p.loss[r.row] = loss;
    });
}

template <class T, int G> DEVICE void divergence_gradient(const divergence_params &p) {
    divergence_each_row<T, G>(p, [&](const divergence_row<T, G> &r, float w) {
        if (w == 0)
            r.clear();
        else
            r.gradient((float)((double)p.dloss[r.row] * w * p.factor));
    });
}

#define DIVERGENCE_ENTRY(op, body, T, G) \
    ENTRY(op##_##T##_##G, SIMT_THREADS, divergence_params) { body<T, G>(p); }
#define DIVERGENCE_ENTRIES(op, body) \
    DIVERGENCE_ENTRY(op, body, f32, 32) \
    DIVERGENCE_ENTRY(op, body, f32, 256) \
    DIVERGENCE_ENTRY(op, body, bf16, 32) \
    DIVERGENCE_ENTRY(op, body, bf16, 256) \
    DIVERGENCE_ENTRY(op, body, f16, 32) \
    DIVERGENCE_ENTRY(op, body, f16, 256)

#endif
