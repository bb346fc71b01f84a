/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on devices: a row is read once, by online statistics. A label out of range makes its loss NaN. */
#include "cross_entropy.h"
#include "math.h"
#include "row.h"

/* A finite number to subtract, so that Inf - Inf does not come: +Inf among the logits then makes the sum Inf, and nothing but -Inf 0. */
DEVICE float to_finite(float x) { return x > f32::largest() ? f32::largest() : x < -f32::largest() ? -f32::largest() : x; }

/* Of the logits z = scale x of a thread, or of a row: sum 2^(log2(e) z - origin), and the sum of x. */
struct logit_sums {
    float origin, sum, total;
};

template <class T, class Group> DEVICE logit_sums cross_entropy_read(const cross_entropy_params &p, int64_t row) {
    using index = typename Group::index;
    const index n = (index)p.v;
    logit_sums s = { -f32::largest(), 0, 0 };
    for (index at = 0; at < n; at += Group::PIECE) {
        float x[Group::VECTORS][VECTOR], max = -infinity();
        Group::template load<T>(x, row_at<T>(p.logits, row), at, n);
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
    return s;
}

/* The loss of a row, in float64, which costs nothing here. A term whose weight is 0 is left out: it might be 0 times Inf. */
template <class T> DEVICE double cross_entropy_loss(const cross_entropy_params &p, int64_t row, int64_t label, double lse, double total) {
    if (label == p.ignore) return 0;
    if (label < 0 || label >= p.v) return not_a_number();
    double loss = lse - (1 - p.smoothing) * ((double)p.scale * load_one<T>(row_at<T>(p.logits, row), label));
    if (p.smoothing > 0) loss -= p.smoothing * (p.scale * total / (double)p.v);
    if (p.z_loss > 0) loss += p.z_loss * lse * lse;
    return loss;
}

template <class T, class Group> DEVICE void cross_entropy_row(const cross_entropy_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const logit_sums own = cross_entropy_read<T, Group>(p, row);
    const float origin = group_max<Group::SIZE>(own.origin);
    const two sums = group_sum<Group::SIZE>(two{ own.origin == origin ? own.sum : own.sum * exp2_approx(own.origin - origin), own.total });
    if (Group::rank() != 0) return;
    const double ln2 = 0.69314718055994531, lse = origin * ln2 + log_of(sums.a);
    if (p.lse.data) store_one<f32>(p.lse.data, row, (float)lse);
    store_one<f32>(p.loss.data, row, (float)cross_entropy_loss<T>(p, row, load_integer(p.labels.data, p.long_labels, row), lse, sums.b));
}

template <class T> constexpr int cross_entropy_held(int) { return 1; }

ROW_ENTRIES_1(cross_entropy, cross_entropy_params, ROW_VECTORS, f32)
ROW_ENTRIES_1(cross_entropy, cross_entropy_params, ROW_VECTORS, bf16)
ROW_ENTRIES_1(cross_entropy, cross_entropy_params, ROW_VECTORS, f16)
