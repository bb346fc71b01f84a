/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on devices: a row is read once, by online statistics, and for the gradient from its end to its
 * beginning again, but for the last piece. */
#include "cross_entropy_gradient.h"
#include "cross_entropy_weighted.h"

template <class T, class Group> DEVICE void cross_entropy_row(const cross_entropy_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const index n = (index)p.v;
    logit_sums own = no_logits();
    for (index at = 0; at < n; at += Group::PIECE) {
        float x[Group::VECTORS][VECTOR];
        Group::template load<T>(x, row_at<T>(p.logits, row), at, n);
        logit_sums_add<Group>(own, p, x, at, n);
    }
    const logit_sums sums = group_logits<Group::SIZE>(own, p);
    if (Group::rank() != 0) return;
    const int64_t label = load_integer(p.labels.data, p.long_labels, row);
    loss_store(p, row, label, is_class(p, label) ? load_one<T>(row_at<T>(p.logits, row), label) : 0.0f, sums);
}

template <class T, bool NARROW, class Group> DEVICE void cross_entropy_with_gradient(const cross_entropy_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const typename T::bits *logits = row_at<T>(p.logits, row);
    const int64_t label = load_integer(p.labels.data, p.long_labels, row);
    const float at_label = Group::rank() == 0 && is_class(p, label) ? load_one<T>(logits, label) : 0.0f;
    logit_gradient_row<T, NARROW, Group>(p, row, label, at_label, [&](const logit_sums &s, float x) {
        if (Group::rank() == 0) loss_store(p, row, label, x, s);
    });
}

template <class T, class Group> DEVICE void cross_entropy_gradient_row(const cross_entropy_params &p) {
    cross_entropy_with_gradient<T, false, Group>(p);
}
template <class T, class Group> DEVICE void cross_entropy_narrow_gradient_row(const cross_entropy_params &p) {
    cross_entropy_with_gradient<T, true, Group>(p);
}

template <class T> constexpr int cross_entropy_held(int) { return 1; }
template <class T> constexpr int cross_entropy_gradient_held(int) { return 1; }
template <class T> constexpr int cross_entropy_narrow_gradient_held(int) { return 1; }

ROW_ENTRIES_STREAM(cross_entropy, cross_entropy_params, ROW_VECTORS, f32)
ROW_ENTRIES_STREAM(cross_entropy, cross_entropy_params, ROW_VECTORS, bf16)
ROW_ENTRIES_STREAM(cross_entropy, cross_entropy_params, ROW_VECTORS, f16)
ROW_ENTRIES_2(cross_entropy_gradient, cross_entropy_params, ROW_VECTORS, f32)
ROW_ENTRIES_2(cross_entropy_gradient, cross_entropy_params, ROW_VECTORS, bf16)
ROW_ENTRIES_2(cross_entropy_gradient, cross_entropy_params, ROW_VECTORS, f16)
ROW_ENTRIES_2(cross_entropy_narrow_gradient, cross_entropy_params, ROW_VECTORS, f32)

ENTRY(cross_entropy_weighted, SIMT_THREADS, cross_entropy_params) { cross_entropy_weighted_row(p); }
