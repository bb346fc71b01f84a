/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on devices: a row is read once, by online statistics, and for the gradient from its end to its beginning again, but for the last piece. */
#include "cross_entropy_gradient.h"

/* The logits x of a piece added to what came before. */
template <class Group>
DEVICE void logit_sums_add(logit_sums &s, const cross_entropy_params &p, float (&x)[Group::VECTORS][VECTOR], typename Group::index at,
                           typename Group::index n) {
    float max = -infinity();
    Group::each(at, n, [&](int v, const typename Group::lane &l) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            s.total += x[v][k];
            x[v][k] = inside(l, k) ? product(x[v][k], p.base2) : -infinity();
            max = larger(max, x[v][k]);
        }
    });
    max = to_finite(max);
    if (max > s.origin) {
        s.sum *= exp2_approx(s.origin - max);
        s.origin = max;
    }
    Group::each(at, n, [&](int v, const typename Group::lane &) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) s.sum += exp2_approx(x[v][k] - s.origin);
    });
}

template <class T, class Group> DEVICE void cross_entropy_row(const cross_entropy_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const index n = (index)p.v;
    logit_sums own = { -f32::largest(), 0, 0 };
    for (index at = 0; at < n; at += Group::PIECE) {
        float x[Group::VECTORS][VECTOR];
        Group::template load<T>(x, row_at<T>(p.logits, row), at, n);
        logit_sums_add<Group>(own, p, x, at, n);
    }
    const float origin = group_max<Group::SIZE>(own.origin);
    const two sums = group_sum<Group::SIZE>(two{ moved_sum(own, origin), own.total });
    if (Group::rank() != 0) return;
    const int64_t label = load_integer(p.labels.data, p.long_labels, row);
    loss_store(p, row, label, is_class(p, label) ? load_one<T>(row_at<T>(p.logits, row), label) : 0.0f, { origin, sums.a, sums.b });
}

/* The row's origin, and with it the logit at its label, which one thread has read: once another has this, it has been read, and may be overwritten. */
struct row_origin {
    float origin, at_label;
    DEVICE friend row_origin operator+(row_origin x, row_origin y) { return { larger(x.origin, y.origin), x.at_label + y.at_label }; }
};

template <class T, class Group> DEVICE void cross_entropy_gradient_row(const cross_entropy_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const index n = (index)p.v;
    const typename T::bits *logits = row_at<T>(p.logits, row);
    const int64_t label = load_integer(p.labels.data, p.long_labels, row);
    const float at_label = Group::rank() == 0 && is_class(p, label) ? load_one<T>(logits, label) : 0.0f;
    logit_sums own = { -f32::largest(), 0, 0 };
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
    const row_origin all = group_sum<Group::SIZE>(row_origin{ own.origin, at_label });
    const two sums = group_sum<Group::SIZE>(two{ moved_sum(own, all.origin), own.total });
    const logit_sums s = { all.origin, sums.a, sums.b };
    if (Group::rank() == 0) loss_store(p, row, label, all.at_label, s);
    const row_gradient g = gradient_of(p, row, label, (float)lse_of(s));
    for (at -= Group::PIECE; at >= 0; at -= Group::PIECE) {
        if (at + Group::PIECE < n) Group::template load<T>(bits, logits, at, n);
        gradient_write<T, Group>(p, g, row, bits, at, n);
    }
}

template <class T> constexpr int cross_entropy_held(int) { return 1; }
template <class T> constexpr int cross_entropy_gradient_held(int) { return 1; }

ROW_ENTRIES_STREAM(cross_entropy, cross_entropy_params, ROW_VECTORS, f32)
ROW_ENTRIES_STREAM(cross_entropy, cross_entropy_params, ROW_VECTORS, bf16)
ROW_ENTRIES_STREAM(cross_entropy, cross_entropy_params, ROW_VECTORS, f16)
ROW_ENTRIES_2(cross_entropy_gradient, cross_entropy_params, ROW_VECTORS, f32)
ROW_ENTRIES_2(cross_entropy_gradient, cross_entropy_params, ROW_VECTORS, bf16)
ROW_ENTRIES_2(cross_entropy_gradient, cross_entropy_params, ROW_VECTORS, f16)
