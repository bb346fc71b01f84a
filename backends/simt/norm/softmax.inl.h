/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on devices. A row of one piece is read once; one of several twice, first for its maximum and sum by online
 * statistics. */
#include "softmax.h"
#include "backends/simt/core/row.h"

/* What is subtracted for the maximum: of nothing but -Inf it must not be taken itself, lest exponentials be NaN that
 * are 0 once a larger element comes. If none comes the sum is 0, and y = 0/0. */
DEVICE float softmax_origin(float max) { return max == -infinity() ? 0 : max; }

/* f x of the thread's items, beyond what is visible -Inf; the largest of them and `max`. */
template <class T, class Group>
DEVICE float softmax_read(float (&h)[Group::VECTORS][VECTOR], const softmax_params &p, const void *x,
                          typename Group::index at, typename Group::index n, float max) {
    Group::template load<T>(h, x, at, n);
    Group::each(at, n, [&](int v, const typename Group::lane &l) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            h[v][k] = within(l, k) ? h[v][k] * p.f : -infinity();
            max = larger(max, h[v][k]);
        }
    });
    return max;
}

/* Powers of the thread's items, in place; their sum. */
template <class Group>
DEVICE float softmax_powers(float (&h)[Group::VECTORS][VECTOR], const softmax_params &p, typename Group::index at,
                            typename Group::index n, float origin) {
    float sum = 0;
    Group::each(at, n, [&](int v, const typename Group::lane &) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            h[v][k] = exp2_approx((h[v][k] - origin) * p.spread);
            sum += h[v][k];
        }
    });
    return sum;
}

/* y = h inverse, 0 where nothing is visible. */
template <class T, class Group>
DEVICE void softmax_write(float (&h)[Group::VECTORS][VECTOR], const softmax_params &p, void *y,
                          typename Group::index at, typename Group::index n, float inverse) {
    Group::each(at, (typename Group::index)p.n, [&](int v, const typename Group::lane &l) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[v][k] = l.at + k < n ? h[v][k] * inverse : 0.0f;
        put<T>(h[v], y, l);
    });
}

/* A row of several pieces. A thread's sum is brought to a new maximum at most once for each. */
template <class T, class Group>
DEVICE void softmax_long_row(const softmax_params &p, const void *x, void *y, typename Group::index n) {
    float h[Group::VECTORS][VECTOR], own = -infinity(), sum = 0;
    for (typename Group::index at = 0; at < n; at += Group::PIECE) {
        const float old = own;
        own = softmax_read<T, Group>(h, p, x, at, n, old);
        if (own > old) sum *= exp2_approx((old - own) * p.spread);
        sum += softmax_powers<Group>(h, p, at, n, softmax_origin(own));
    }
    const float max = group_max<Group::SIZE>(own), origin = softmax_origin(max);
    if (own != max) sum *= exp2_approx((own - origin) * p.spread);
    const float inverse = 1 / group_sum<Group::SIZE>(sum);
    for (typename Group::index at = 0; at < (typename Group::index)p.n; at += Group::PIECE) {
        softmax_read<T, Group>(h, p, x, at, n, max);
        softmax_powers<Group>(h, p, at, n, origin);
        softmax_write<T, Group>(h, p, y, at, n, inverse);
    }
}

template <class T, class Group> DEVICE void softmax_row(const softmax_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const int64_t batch = p.rows == p.s ? 0 : row / p.s, i = row - batch * p.s;
    const typename Group::index n = (typename Group::index)visible(p.causal, i, p.s, p.n);
    const void *x = row_at<T>(p.x, batch, i);
    void *y = row_at<T>(p.y, batch, i);
    if (p.n > Group::PIECE) {
        softmax_long_row<T, Group>(p, x, y, n);
        return;
    }
    float h[Group::VECTORS][VECTOR];
    const float max = group_max<Group::SIZE>(softmax_read<T, Group>(h, p, x, 0, n, -infinity()));
    const float sum = group_sum<Group::SIZE>(softmax_powers<Group>(h, p, 0, n, softmax_origin(max)));
    softmax_write<T, Group>(h, p, y, 0, n, 1 / sum);
}

template <class T> constexpr int softmax_held(int) { return 1; }

ROW_ENTRIES_1(softmax, softmax_params, ROW_VECTORS, f32)
ROW_ENTRIES_1(softmax, softmax_params, ROW_VECTORS, bf16)
ROW_ENTRIES_1(softmax, softmax_params, ROW_VECTORS, f16)
