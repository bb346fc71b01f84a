/* SPDX-License-Identifier: Apache-2.0 */
/* The options of attention and its gradient on devices. */
#ifndef TRINE_SIMT_ATTENTION_TERMS_H
#define TRINE_SIMT_ATTENTION_TERMS_H

#include "attention_options.h"
#include "backends/simt/core/math.h"
#include "backends/simt/core/philox.h"

/* Where a query is: `row` counts those of all batches and heads. */
struct attention_query_place {
    int64_t batch, head, i, row;
};

/* What is added to the scores of one query, and which of its weights are kept; without OPTIONS nothing and all. */
template <class T, bool OPTIONS> struct attention_terms {
    DEVICE attention_terms(const attention_options &, const attention_query_place &, int64_t, int64_t) {}
    DEVICE float add(const attention_options &, int64_t, float z) const { return z; }
    DEVICE bool keeps(const simt_dropout &, int64_t) const { return true; }
    template <int N> DEVICE uint32_t keeps_run(const simt_dropout &, int64_t) const { return ~0u; }
};
template <class T> struct attention_terms<T, true> {
    const typename T::bits *narrow; /* the row of a bias, in one of two types; nullptr: none */
    const float *wide;
    float slope;
    int64_t keys, aligned; /* keys: of the call; aligned: the one that distances are from */
    uint64_t first;        /* the row's first element by dropout's count */

    DEVICE attention_terms(const attention_options &o, const attention_query_place &q, int64_t sk, int64_t same)
        : narrow(nullptr), wide(nullptr), slope(0), keys(sk), aligned(same),
          first((uint64_t)q.row * ((uint64_t)(sk + 7) / 8 * 8)) {
        const int64_t row = q.batch * o.batch + q.head * o.head + q.i * o.query;
        if (o.bias && o.wide) wide = (const float *)o.bias + row;
        if (o.bias && !o.wide) narrow = (const typename T::bits *)o.bias + row;
        if (o.slopes) slope = o.slopes[q.batch * o.slope_batch + q.head * o.slope_head];
    }
    /* To the score with key j, which may be one beyond the last. */
    DEVICE float add(const attention_options &o, int64_t j, float z) const {
        if (wide && j < keys) z += wide[j * o.key];
        if (narrow && j < keys) z += T::get(narrow[j * o.key]);
        return slope != 0 ? fused(-slope, magnitude((float)(aligned - j)), z) : z;
    }
    DEVICE bool keeps(const simt_dropout &d, int64_t j) const {
        const uint64_t number = first + (uint64_t)j;
        return !(d.p > 0) || kept<8, true>(d, number / 8 * 8) >> number % 8 & 1;
    }
    /* Bit k: of key j + k. */
    template <int N> DEVICE uint32_t keeps_run(const simt_dropout &d, int64_t j) const {
        return d.p > 0 ? kept<N>(d, first + (uint64_t)j) : ~0u;
    }
    /* For four threads that have columns 2t and 2t + 1 of each 8 from j on, a multiple of 8: bit 8c + e for element e
     * of the thread's in the c-th of four 8s. Each thread finds the bits of one 8. */
    DEVICE uint32_t keeps_pairs(const simt_dropout &d, int64_t j) const {
        const int lane = thread_index() % 4;
        const uint32_t mine = kept<8, true>(d, first + (uint64_t)j + 8 * lane), next = shuffle_xor(mine, 1),
                       two = lane % 2 ? next | mine << 8 : mine | next << 8, others = shuffle_xor(two, 2);
        return (lane / 2 ? others | two << 16 : two | others << 16) >> 2 * lane;
    }
};

/* The generator that a call's weights are dropped by. */
template <bool OPTIONS> DEVICE simt_dropout attention_dropout_of(const attention_options &o) {
    if constexpr (!OPTIONS) return {};
    return o.philox ? dropout_told(o.dropout, o.philox) : o.dropout;
}

template <class T> DEVICE float attention_sink_of(const attention_options &o, int64_t head) {
    return o.wide_sinks ? ((const float *)o.sinks)[head] : T::get(((const typename T::bits *)o.sinks)[head]);
}

/* A row's sum of weights by a base in powers of 2, with that of its sink. `top`: the largest score. */
struct attention_total {
    float sum, factor; /* factor: of other sums by that base */
    float lse;
    bool far; /* an exponent is so far from 0 that little is left of its fraction */
};
DEVICE attention_total attention_total_of(float top, float base, float sum, float sink) {
    if (sink == -infinity()) return { sum, 1.0f, top + log_of(sum), false };
    const float at = sink * LOG2E, now = at > base ? at : base, factor = exp2_approx(base - now),
                total = fused(sum, factor, exp2_approx(at - now));
    return { total, factor, (at > base ? sink : top) + log_of(total), magnitude(at) > 0x1p18f - 256 };
}

#endif
