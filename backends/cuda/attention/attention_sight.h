/* SPDX-License-Identifier: Apache-2.0 */
/* What queries and keys see of each other: causal masks, windows and packed sequences are all one range of keys for a
 * query, or of queries for a key. */
#ifndef TRINE_CUDA_ATTENTION_SIGHT_H
#define TRINE_CUDA_ATTENTION_SIGHT_H

#include "attention.h"
#include "backends/simt/attention/attention_terms.h"
#include "backends/simt/core/math.h"

DEVICE int lesser(int a, int b) { return b < a ? b : a; }
DEVICE int greater(int a, int b) { return b > a ? b : a; }

/* From `low` to below `high`, none if these are equal. Both grow from lane to lane. */
struct attention_sight {
    int low, high;
    DEVICE bool has(int i) const { return i >= low && i < high; }
    DEVICE bool none() const { return low >= high; }
    /* The offsets of its sequence make no sense: it sees nothing and gives NaN. */
    DEVICE bool bad() const { return high < 0; }
};

/* A sequence's queries q0 .. q1-1 and keys k0 .. k1-1, those that count. */
struct attention_sequence {
    int q0, q1, k0, k1;
    DEVICE bool bad(const attention_problem &p) const {
        return q0 < 0 || q1 < q0 || q1 > p.sq || k0 < 0 || k1 < k0 || k1 > p.sk;
    }
};

/* The sequence that has token i of `offsets`, which are either cu_q or cu_k; an empty one behind the last. */
DEVICE attention_sequence attention_sequence_of(const attention_problem &p, const int32_t *offsets, int batch, int i) {
    attention_sequence s = { 0, p.sq, 0, p.sk };
    int n = batch;
    if (p.cu_q != nullptr) {
        int last = p.nseq;
        n = 0;
        while (last - n > 1) {
            const int middle = n + (last - n) / 2;
            (offsets[middle] <= i ? n : last) = middle;
        }
        if (offsets[p.nseq] <= i) return { p.cu_q[p.nseq], p.cu_q[p.nseq], p.cu_k[p.nseq], p.cu_k[p.nseq] };
        if (p.nseq == 0 || offsets[n] > i || offsets[n + 1] <= i) return { 0, -1, 0, -1 };
        s = { p.cu_q[n], p.cu_q[n + 1], p.cu_k[n], p.cu_k[n + 1] };
    }
    const int q1 = p.used_q ? s.q0 + p.used_q[n] : s.q1, k1 = p.used_k ? s.k0 + p.used_k[n] : s.k1;
    return q1 > s.q1 || k1 > s.k1 ? attention_sequence{ 0, -1, 0, -1 } : attention_sequence{ s.q0, q1, s.k0, k1 };
}

/* The part of low .. high-1 that is in first .. end-1. */
DEVICE attention_sight attention_sight_in(int64_t low, int64_t high, int first, int end) {
    return { (int)(low < first ? first
                   : low > end ? end
                               : low),
             (int)(high < first ? first
                   : high > end ? end
                                : high) };
}

DEVICE attention_sight attention_keys_of(const attention_problem &p, int batch, int i) {
    if (p.simple) return { 0, p.causal ? greater(lesser(p.sk - p.sq + i + 1, p.sk), 0) : p.sk };
    const attention_sequence s = attention_sequence_of(p, p.cu_q, batch, i);
    if (s.bad(p)) return { 0, -1 };
    if (i >= s.q1) return { s.k1, s.k1 };
    const int64_t same = (int64_t)s.k1 - s.q1 + i, far = p.after ? same + p.after : s.k1;
    return attention_sight_in(p.before ? same - p.before + 1 : s.k0, p.causal && same + 1 < far ? same + 1 : far, s.k0,
                              s.k1);
}

DEVICE attention_sight attention_queries_of(const attention_problem &p, int batch, int j) {
    const attention_sequence s = attention_sequence_of(p, p.cu_k, batch, j);
    if (s.bad(p)) return { 0, -1 };
    if (j >= s.k1) return { s.q1, s.q1 };
    const int64_t same = (int64_t)s.q1 - s.k1 + j, near = p.after ? same - p.after + 1 : s.q0;
    return attention_sight_in(p.causal && same > near ? same : near, p.before ? same + p.before : s.q1, s.q0, s.q1);
}

/* Does query i count? */
DEVICE bool attention_counts(const attention_problem &p, int batch, int i) {
    return p.simple || i < attention_sequence_of(p, p.cu_q, batch, i).q1;
}

/* What any of a tile's lanes sees, and what all of them see; lanes beyond the end do not count. */
struct attention_span {
    attention_sight any, all;
};
struct attention_least {
    DEVICE int operator()(int a, int b) const { return lesser(a, b); }
};
struct attention_most {
    DEVICE int operator()(int a, int b) const { return greater(a, b); }
};
DEVICE attention_span attention_span_of(const attention_sight &s, bool exists) {
    const int32_t most = INT32_MAX;
    return { { exists && !s.none() ? s.low : most, exists && !s.none() ? s.high : 0 },
             { exists ? s.low : 0, exists ? s.high : most } };
}

/* ----------------------------------------------------------------------------------------------------------- scores */

/* tanh x within 8 units of 2^-24, in fewer registers than tanh_of(): where 2/(e^2x + 1) is subtracted from 1, it counts
 * for less than half. */
DEVICE float attention_tanh(float x) {
    const float a = magnitude(x), a2 = a * a;
    float p = -5.69229620e-3f;
    p = fused(p, a2, 2.06281673e-2f);
    p = fused(p, a2, -5.37365153e-2f);
    p = fused(p, a2, 1.33314058e-1f);
    p = fused(p, a2, -3.33332807e-1f);
    const float e = exp2_approx(a * (2 * LOG2E)),
                y = a < 0.625f ? fused(a2 * a, p, a) : fused(-2.0f, reciprocal(e + 1.0f), 1.0f);
    return float_of_bits(bits_of_float(y) | (bits_of_float(x) & 0x80000000u));
}

/* The options of a query. */
template <class T, bool OPTIONS>
DEVICE attention_terms<T, OPTIONS> attention_terms_of(const attention_problem &p, int batch, int head, int i) {
    int64_t aligned = 0;
    if (OPTIONS && p.options.slopes) {
        const attention_sequence s = attention_sequence_of(p, p.cu_q, batch, i);
        aligned = (int64_t)s.k1 - s.q1 + i;
    }
    return { p.options, { batch, head, i, ((int64_t)batch * p.h + head) * p.sq + i }, p.sk, aligned };
}

/* A score from the product q.k with key j, and its derivative by the scaled product. */
struct attention_score {
    float z, slope;
};
template <class Terms>
DEVICE attention_score attention_score_of(const attention_problem &p, const Terms &terms, int j, float product) {
    const float s = product * p.scale;
    if (!(p.softcap > 0)) return { terms.add(p.options, j, s), 1.0f };
    const float t = tanh_of(s / p.softcap);
    return { terms.add(p.options, j, p.softcap * t), fused(-t, t, 1.0f) };
}

/* e^(z - base) where the difference is not positive, or hardly; below 2^-126 it is 0. */
DEVICE float attention_weight(float z, float base) { return exp2_approx((z - base) * LOG2E); }

/* The same times 2^24, so that it can be multiplied by what is large before that is taken back; and no more than that,
 * where base is so coarse that the difference is positive. */
#define ATTENTION_LIFT 0x1p24f
DEVICE float attention_lifted(float z, float base) { return exp2_approx(fused(not_negative(base - z), -LOG2E, 24.0f)); }

/* The sum of weights with that of a sink, whose score becomes the largest if it is more; returns what other sums by the
 * same base are to be multiplied by. */
DEVICE float attention_add_sink(float sink, float &top, float &sum) {
    if (sink == -infinity()) return 1.0f;
    const float before = top, now = sink > before ? sink : before, factor = exp2_approx((before - now) * LOG2E);
    top = now;
    sum = fused(sum, factor, exp2_approx((sink - now) * LOG2E));
    return factor;
}

/* Of a query; -Inf if there are none, or it does not count. */
template <class T> DEVICE float attention_sink(const attention_problem &p, int batch, int head, int i) {
    return p.options.sinks == nullptr || !attention_counts(p, batch, i) ? -infinity()
                                                                        : attention_sink_of<T>(p.options, head);
}

/* Element 0 of a row. */
template <class T>
DEVICE typename T::bits *attention_row(const attention_tensor &t, int64_t batch, int64_t token, int64_t head) {
    return (typename T::bits *)t.data + (batch * t.batch + token * t.token + head * t.head);
}

#endif
