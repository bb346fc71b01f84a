/* SPDX-License-Identifier: Apache-2.0 */
/* segment_reduce_backward on devices. What all rows of a segment tell is known before any is written, since dx may be
 * x. */
#include "segments.inl.h"

template <class T, int COLUMNS>
DEVICE void segment_put(const segments_params &p, const segment_task<COLUMNS> &t, int64_t row,
                        const float (&dx)[SEGMENT_VECTOR]) {
    store<T>(dx, row_at<T>(p.out, row), t.l);
}

template <class T, int COLUMNS>
DEVICE void segment_spread(const segments_params &p, const segment_task<COLUMNS> &t,
                           const float (&dy)[SEGMENT_VECTOR]) {
    float dx[SEGMENT_VECTOR];
#pragma unroll
    for (int k = 0; k < SEGMENT_VECTOR; k++)
        dx[k] = p.kind == TRINE_SEGMENT_MEAN ? dy[k] / (float)(t.end - t.first) : dy[k];
    for (int64_t row = t.first + t.line; row < t.end; row += segment_shape<COLUMNS>::LINES)
        segment_put<T>(p, t, row, dx);
}

/* The first row that has the maximum, or is NaN. */
struct segment_place {
    float most;
    int32_t low, high; /* halves of the row; high: -1: none */
    DEVICE int64_t row() const { return high < 0 ? -1 : (int64_t)high << 32 | (uint32_t)low; }
    DEVICE void set(float x, int64_t row) { most = x, low = (int32_t)row, high = (int32_t)(row >> 32); }
};
struct segment_first {
    DEVICE segment_place operator()(const segment_place &a, const segment_place &b) const {
        if (b.high < 0) return a;
        if (a.high < 0) return b;
        const bool same = a.most == b.most || (a.most != a.most && b.most != b.most);
        return same ? (b.row() < a.row() ? b : a) : segment_beats(b.most, a.most) ? b : a;
    }
};
template <class T, int COLUMNS>
DEVICE void segment_to_first(const segments_params &p, const segment_task<COLUMNS> &t,
                             const float (&dy)[SEGMENT_VECTOR]) {
    SHARED segment_place part[segment_shape<COLUMNS>::LINES][COLUMNS];
    const float sign = p.kind == TRINE_SEGMENT_MIN ? -1.0f : 1.0f;
    segment_place own[SEGMENT_VECTOR];
#pragma unroll
    for (segment_place &one : own) one = { 0, 0, -1 };
    segment_each<T, 1>(p, t, [&](int64_t row, const float(&x)[SEGMENT_VECTOR]) {
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++)
            if (own[k].high < 0 || segment_beats(sign * x[k], own[k].most)) own[k].set(sign * x[k], row);
    });
    segment_share(t, own, part, segment_first());
    for (int64_t row = t.first + t.line; row < t.end; row += segment_shape<COLUMNS>::LINES) {
        float dx[SEGMENT_VECTOR];
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++) dx[k] = own[k].row() == row ? dy[k] : 0.0f;
        segment_put<T>(p, t, row, dx);
    }
}

template <class T, int COLUMNS>
DEVICE void segment_softmax(const segments_params &p, const segment_task<COLUMNS> &t,
                            const float (&dy)[SEGMENT_VECTOR]) {
    SHARED float part[segment_shape<COLUMNS>::LINES][COLUMNS];
    const segment_power s = segment_powers<T>(p, t, part);
    segment_each<T, 1>(p, t, [&](int64_t row, const float(&x)[SEGMENT_VECTOR]) {
        float dx[SEGMENT_VECTOR];
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++) dx[k] = dy[k] * (exp_of(x[k] - s.shift[k]) / s.sum[k]);
        segment_put<T>(p, t, row, dx);
    });
}

template <class T, int COLUMNS>
DEVICE void segment_others(const segments_params &p, const segment_task<COLUMNS> &t,
                           const float (&dy)[SEGMENT_VECTOR]) {
    SHARED segment_product part[segment_shape<COLUMNS>::LINES][COLUMNS];
    segment_product own[SEGMENT_VECTOR];
#pragma unroll
    for (int k = 0; k < SEGMENT_VECTOR; k++) own[k] = t.line == 0 ? segment_factor(dy[k]) : segment_product{ 1, 0, 0 };
    segment_products<T>(p, t, own);
    segment_share(t, own, part, segment_times());
    segment_each<T, 1>(p, t, [&](int64_t row, const float(&x)[SEGMENT_VECTOR]) {
        float dx[SEGMENT_VECTOR];
#pragma unroll
        for (int k = 0; k < SEGMENT_VECTOR; k++) dx[k] = segment_value(segment_without(own[k], segment_factor(x[k])));
        segment_put<T>(p, t, row, dx);
    });
}

template <class T, int COLUMNS> DEVICE void segment_reduce_backward(const segments_params &p) {
    const segment_task<COLUMNS> t(p);
    float dy[SEGMENT_VECTOR];
    load<T>(dy, row_at<T>(p.dy, t.number), t.l);
    switch (p.kind) {
    case TRINE_SEGMENT_SUM:
    case TRINE_SEGMENT_MEAN: segment_spread<T>(p, t, dy); break;
    case TRINE_SEGMENT_MAX:
    case TRINE_SEGMENT_MIN: segment_to_first<T>(p, t, dy); break;
    case TRINE_SEGMENT_LOGSUMEXP: segment_softmax<T>(p, t, dy); break;
    default: segment_others<T>(p, t, dy);
    }
}

/* Rows of no segment. */
template <class T> DEVICE void segment_clear(const segments_params &p) {
    const int64_t first = load_integer(p.offsets, p.wide_offsets, 0),
                  end = load_integer(p.offsets, p.wide_offsets, p.e);
    const int64_t from = block_index() * SEGMENT_CLEARED,
                  to = from + SEGMENT_CLEARED < p.p ? from + SEGMENT_CLEARED : p.p;
    if (first <= from && to <= end) return;
    for (int64_t row = from; row < to; row++)
        for (int64_t k = thread_index(); (row < first || row >= end) && k < p.n; k += SIMT_THREADS)
            store_one<T>(row_at<T>(p.out, row), k, 0.0f);
}

#define SEGMENT_BACKWARD(T) \
    ENTRY(segment_reduce_backward_clear_##T, SIMT_THREADS, segments_params) { segment_clear<T>(p); } \
    SEGMENT_ENTRIES(segment_reduce_backward, T)
SEGMENT_BACKWARD(f32)
SEGMENT_BACKWARD(bf16)
SEGMENT_BACKWARD(f16)
