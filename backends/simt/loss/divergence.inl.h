/* SPDX-License-Identifier: Apache-2.0 */
/* Device side that kl_div, jsd and their gradients share: a group of G threads has a row, of logits the largest and the
 * sum of exponentials first, by online statistics, then what is asked for.
 *
 * NOTES. Floor: both rows once. Rows of logits are read twice, and three times for jsd's gradient, all but the first
 * from L2. */
#ifndef TRINE_SIMT_DIVERGENCE_INL_H
#define TRINE_SIMT_DIVERGENCE_INL_H

#include "divergence.h"
#include "backends/simt/core/math.h"
#include "backends/simt/core/row.h"

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

/* FAST: it is known to be a logit, whose probability is at most 1. */
template <bool FAST> DEVICE float class_log(const divergence_line &r, float x) {
    if (FAST || r.kind == ROW_LOGITS) return r.distance(x) - r.log_sum;
    return r.kind == ROW_LOGS ? x : x < 0 ? not_a_number() : log_of(x);
}
template <bool FAST> DEVICE one_class class_of(const divergence_line &r, float x) {
    const float l = class_log<FAST>(r, x);
    if (FAST) return { l, exp_of(l) };
    return { l, r.kind == ROW_PROBABILITIES ? x : power_of(l) };
}

/* The largest logit of a thread so far, and the sum of exponentials of what others are below it. */
struct divergence_sum {
    float most, sum;
};

/* A probability that is 0 leaves the other factor out. */
DEVICE float class_part(float p, float l) { return p == 0 ? 0.0f : p * l; }

template <class T, int G> struct divergence_row {
    const divergence_params &p;
    int64_t row;
    int rank;
    bool aligned;

    DEVICE const void *at(const simt_rows &t) const { return (const typename T::bits *)t.data + row * t.row; }

    /* Body(vector, fast) for each vector of the row; fast: both rows are logits, and all its elements are there, which
     * is so of most vectors that are large enough for time to count. */
    template <bool FAST> struct known {
        static constexpr bool yes = FAST;
    };
    DEVICE bool logits() const { return p.of_input == ROW_LOGITS && p.of_target == ROW_LOGITS; }
    template <class Body> DEVICE void each(const Body &body) const {
        const int64_t whole = aligned && logits() ? p.v / VECTOR * VECTOR : 0;
        int64_t i = rank * VECTOR;
#pragma unroll 1
        for (; i < whole; i += G * VECTOR) body(lane{ i, p.v, true }, known<true>());
#pragma unroll 1
        for (; i < p.v; i += G * VECTOR) body(lane{ i, p.v, aligned }, known<false>());
    }
    template <bool FAST> static DEVICE void get(float (&v)[VECTOR], const void *x, const lane &l) {
        load_lane<T, FAST>(v, (const typename T::bits *)x, l);
    }

    /* Of a vector's logits. An origin that is not finite is that of no number yet. */
    template <bool FAST> DEVICE void add(divergence_sum &own, const float (&x)[VECTOR], const lane &l) const {
        float most = own.most, e[VECTOR];
#pragma unroll
        for (int k = 0; k < VECTOR; k++)
            if (FAST || within(l, k)) most = larger(most, x[k]);
        if (most > own.most) own.sum *= moved(own.most, most), own.most = most;
        const divergence_line r = { nullptr, ROW_LOGITS, most == -infinity() ? 0.0f : most * 0.5f, p.twice, 0 };
#pragma unroll
        for (int k = 0; k < VECTOR; k++) e[k] = FAST || within(l, k) ? exp_of(r.distance(x[k])) : 0.0f;
        own.sum += vector_sum(e);
    }
    DEVICE float moved(float from, float to) const { return exp_of((from * 0.5f - to * 0.5f) * p.twice); }

    DEVICE divergence_line line(const simt_rows &t, row_kind kind, const divergence_sum &own) const {
        divergence_line r = { at(t), kind, 0, p.twice, 0 };
        if (kind != ROW_LOGITS) return r;
        const float most = group_max<G>(own.most);
        r.half = most * 0.5f;
        r.log_sum = log_of(group_sum<G>(own.most < most ? own.sum * moved(own.most, most) : own.sum));
        return r;
    }

    /* Both rows, with their statistics. */
    struct both {
        divergence_line x, y;
    };
    DEVICE both lines() const {
        const void *const x = at(p.input), *const y = at(p.target);
        divergence_sum of_x = { -infinity(), 0 }, of_y = of_x;
        if (p.of_input == ROW_LOGITS || p.of_target == ROW_LOGITS)
            each([&](const lane &l, auto fast) {
                float a[VECTOR], b[VECTOR];
                get<decltype(fast)::yes>(a, x, l);
                get<decltype(fast)::yes>(b, y, l);
                if (decltype(fast)::yes || p.of_input == ROW_LOGITS) add<decltype(fast)::yes>(of_x, a, l);
                if (decltype(fast)::yes || p.of_target == ROW_LOGITS) add<decltype(fast)::yes>(of_y, b, l);
            });
        return { line(p.input, p.of_input, of_x), line(p.target, p.of_target, of_y) };
    }
    /* Body(q, c, k) for each element of a vector of both. */
    template <bool FAST, class Body> DEVICE void classes(const both &r, const lane &l, const Body &body) const {
        float a[VECTOR], b[VECTOR];
        get<FAST>(a, r.x.x, l);
        get<FAST>(b, r.y.x, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++)
            if (FAST || within(l, k)) body(class_of<FAST>(r.x, a[k]), class_of<FAST>(r.y, b[k]), k);
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
        const both r = lines();
        float sum = 0;
        each([&](const lane &l, auto fast) {
            classes<decltype(fast)::yes>(r, l, [&](const one_class &q, const one_class &c, int) { sum += term(c, q); });
        });
        return group_sum<G>(sum);
    }

    /* What the gradient of a row has for a sum: of p, or of q rho, or of beta 1 and logarithms -1. */
    DEVICE float total(const both &r) const {
        if (r.x.kind != ROW_LOGITS) return p.beta == 1 ? -1.0f : 0.0f;
        if (p.beta == 0 && r.y.kind == ROW_LOGITS) return 1.0f;
        float sum = 0;
        each([&](const lane &l, auto fast) {
            classes<decltype(fast)::yes>(
                r, l, [&](const one_class &q, const one_class &c, int) { sum += p.beta == 0 ? c.p : q.p * rho(c, q); });
        });
        return group_sum<G>(sum);
    }

    DEVICE void gradient(float gain) const {
        const both r = lines();
        const float sum = total(r);
        void *to = const_cast<void *>(at(p.dinput));
        each([&](const lane &l, auto fast) {
            float g[VECTOR] = {};
            classes<decltype(fast)::yes>(r, l, [&](const one_class &q, const one_class &c, int k) {
                if (p.beta > 0)
                    g[k] = gain * (q.p * (rho(c, q) - sum));
                else
                    g[k] = gain * (r.x.kind == ROW_LOGITS ? class_part(q.p, sum) - c.p : -c.p);
            });
            if constexpr (decltype(fast)::yes)
                store_vector<T>(g, (typename T::bits *)to + l.at);
            else
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
