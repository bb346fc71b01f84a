/* SPDX-License-Identifier: Apache-2.0 */
/* What queries and keys see of each other: causal masks, windows and packed sequences are all one range of keys for a
 * query, or of queries for a key. */
#ifndef TRINE_CUDA_ATTENTION_SIGHT_H
#define TRINE_CUDA_ATTENTION_SIGHT_H

#include "attention.h"
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

/* A sequence's queries q0 .. q1-1 and keys k0 .. k1-1. */
struct attention_sequence {
    int q0, q1, k0, k1;
    DEVICE bool bad(const attention_problem &p) const {
        return q0 < 0 || q1 < q0 || q1 > p.sq || k0 < 0 || k1 < k0 || k1 > p.sk;
    }
};

/* The sequence that has token i of `offsets`, which are either cu_q or cu_k. */
DEVICE attention_sequence attention_sequence_of(const attention_problem &p, const int32_t *offsets, int i) {
    if (p.cu_q == nullptr) return { 0, p.sq, 0, p.sk };
    int first = 0, last = p.nseq;
    while (last - first > 1) {
        const int middle = first + (last - first) / 2;
        (offsets[middle] <= i ? first : last) = middle;
    }
    if (p.nseq == 0 || offsets[first] > i || offsets[first + 1] <= i) return { 0, -1, 0, -1 };
    return { p.cu_q[first], p.cu_q[first + 1], p.cu_k[first], p.cu_k[first + 1] };
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

DEVICE attention_sight attention_keys_of(const attention_problem &p, int i) {
    if (p.cu_q == nullptr && p.window == 0)
        return { 0, p.causal ? greater(lesser(p.sk - p.sq + i + 1, p.sk), 0) : p.sk };
    const attention_sequence s = attention_sequence_of(p, p.cu_q, i);
    if (s.bad(p)) return { 0, -1 };
    const int64_t same = (int64_t)s.k1 - s.q1 + i, far = p.window ? same + p.window : s.k1;
    return attention_sight_in(p.window ? same - p.window + 1 : s.k0, p.causal && same + 1 < far ? same + 1 : far, s.k0,
                              s.k1);
}

DEVICE attention_sight attention_queries_of(const attention_problem &p, int j) {
    const attention_sequence s = attention_sequence_of(p, p.cu_k, j);
    if (s.bad(p)) return { 0, -1 };
    const int64_t same = (int64_t)s.q1 - s.k1 + j, near = p.window ? same - p.window + 1 : s.q0;
    return attention_sight_in(p.causal && same > near ? same : near, p.window ? same + p.window : s.q1, s.q0, s.q1);
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

/* A score from the product q.k, and its derivative by the scaled product. */
struct attention_score {
    float z, slope;
};
DEVICE attention_score attention_score_of(const attention_problem &p, float product) {
    const float s = product * p.scale;
    if (!(p.softcap > 0)) return { s, 1.0f };
    const float t = tanh_of(s / p.softcap);
    return { p.softcap * t, fused(-t, t, 1.0f) };
}

/* e^(z - base) where the difference is not positive, or hardly; below 2^-126 it is 0. */
DEVICE float attention_weight(float z, float base) { return exp2_approx((z - base) * LOG2E); }

/* The same times 2^24, so that it can be multiplied by what is large before that is taken back; and no more than that,
 * where base is so coarse that the difference is positive. */
#define ATTENTION_LIFT 0x1p24f
DEVICE float attention_lifted(float z, float base) { return exp2_approx(fused(not_negative(base - z), -LOG2E, 24.0f)); }

/* Element 0 of a row. */
template <class T>
DEVICE typename T::bits *attention_row(const attention_tensor &t, int64_t batch, int64_t token, int64_t head) {
    return (typename T::bits *)t.data + (batch * t.batch + token * t.token + head * t.head);
}

#endif
