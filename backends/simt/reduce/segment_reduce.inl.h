/* SPDX-License-Identifier: Apache-2.0 */
/* segment_reduce on devices. */
#include "segments.inl.h"

template <class T, int COLUMNS>
DEVICE void segment_put(const segments_params &p, const segment_task<COLUMNS> &t, float y) {
    const int64_t column = t.tile + thread_index();
    if (thread_index() < COLUMNS && column < p.n)
        store_one<T>(row_at<T>(p.out, t.number), column, t.good ? y : not_a_number());
}

template <class T, int COLUMNS> DEVICE float segment_sum(const segments_params &p, const segment_task<COLUMNS> &t) {
    SHARED float part[segment_shape<COLUMNS>::LINES][COLUMNS];
    float sum[SEGMENT_VECTOR] = {};
    segment_each<T>(p, t, [&](int64_t, const float(&x)[SEGMENT_VECTOR]) {
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++) sum[k] += x[k];
    });
    const float all = segment_combine(t, sum, part, plus());
    return p.kind == TRINE_SEGMENT_MEAN && t.end > t.first ? all / (float)(t.end - t.first) : all;
}

template <class T, int COLUMNS> DEVICE float segment_most(const segments_params &p, const segment_task<COLUMNS> &t) {
    SHARED float part[segment_shape<COLUMNS>::LINES][COLUMNS];
    const float sign = p.kind == TRINE_SEGMENT_MIN ? -1.0f : 1.0f;
    float most[SEGMENT_VECTOR];
#pragma unroll
    for (float &m : most) m = -infinity();
    segment_each<T>(p, t, [&](int64_t, const float(&x)[SEGMENT_VECTOR]) {
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++) most[k] = segment_beats(sign * x[k], most[k]) ? sign * x[k] : most[k];
    });
    return sign * segment_combine(t, most, part, segment_larger());
}

/* Each thread has the logsumexp of its own columns, in all lines. */
template <class T, int COLUMNS>
DEVICE void segment_logsumexp(const segments_params &p, const segment_task<COLUMNS> &t) {
    SHARED float part[segment_shape<COLUMNS>::LINES][COLUMNS];
    const segment_power s = segment_powers<T>(p, t, part);
    if (t.line != 0) return;
    float y[SEGMENT_VECTOR];
#pragma unroll
    for (int k = 0; k < SEGMENT_VECTOR; k++) {
        y[k] = magnitude(s.most[k]) == infinity() ? s.most[k] : s.shift[k] + log_of(s.sum[k]);
        if (!t.good) y[k] = not_a_number();
    }
    store<T>(y, row_at<T>(p.out, t.number), lane{ t.l.at, t.l.n, false });
}

template <class T, int COLUMNS> DEVICE float segment_all(const segments_params &p, const segment_task<COLUMNS> &t) {
    SHARED segment_product part[segment_shape<COLUMNS>::LINES][COLUMNS];
    segment_product own[SEGMENT_VECTOR];
#pragma unroll
    for (segment_product &one : own) one = { 1, 0, 0 };
    segment_products<T>(p, t, own);
    return segment_value(segment_combine(t, own, part, segment_times()));
}

template <class T, int COLUMNS> DEVICE void segment_reduce(const segments_params &p) {
    const segment_task<COLUMNS> t(p);
    switch (p.kind) {
    case TRINE_SEGMENT_SUM:
    case TRINE_SEGMENT_MEAN: segment_put<T>(p, t, segment_sum<T>(p, t)); break;
    case TRINE_SEGMENT_MAX:
    case TRINE_SEGMENT_MIN: segment_put<T>(p, t, segment_most<T>(p, t)); break;
    case TRINE_SEGMENT_LOGSUMEXP: segment_logsumexp<T>(p, t); break;
    default: segment_put<T>(p, t, segment_all<T>(p, t));
    }
}

SEGMENT_ENTRIES(segment_reduce, f32)
SEGMENT_ENTRIES(segment_reduce, bf16)
SEGMENT_ENTRIES(segment_reduce, f16)
