/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on devices. A row of one piece is read once; a longer one twice, first for its maximum and sum by online statistics. */
#include "softmax.h"
#include "row.h"

/* What is subtracted for the maximum: of nothing but -Inf it must not be taken itself, lest exponentials be NaN that are 0 once a larger element comes. If
 * none comes the sum is 0, and y = 0/0. */
DEVICE float softmax_origin(float max) { return max == -infinity() ? 0 : max; }

/* f x of the thread's items; beyond what is visible -Inf. */
template <class T, class Group> DEVICE void softmax_read(float (&h)[ROW_VECTORS][VECTOR], const softmax_params &p, const void *x, int64_t at, int64_t n) {
#pragma unroll
    for (int v = 0; v < ROW_VECTORS; v++) {
        const lane l = Group::vector(at, v, n, p.wide);
        load<T>(h[v], x, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[v][k] = within(l, k) ? h[v][k] * p.f : -infinity();
    }
}

/* The thread's maximum and the sum of its powers in steps of a piece; a sum is brought to a new maximum at most once for each. */
template <class T, class Group>
DEVICE void softmax_statistics(float (&h)[ROW_VECTORS][VECTOR], const softmax_params &p, const void *x, int64_t n, float *max_out, float *sum_out) {
    float max = -infinity(), sum = 0;
    for (int64_t at = 0; at < n; at += Group::PIECE) {
        softmax_read<T, Group>(h, p, x, at, n);
        const float old = max;
#pragma unroll
        for (int v = 0; v < ROW_VECTORS; v++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) max = larger(max, h[v][k]);
        if (max > old) sum *= exp2_approx((old - max) * p.spread);
        const float origin = softmax_origin(max);
#pragma unroll
        for (int v = 0; v < ROW_VECTORS; v++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) sum += exp2_approx((h[v][k] - origin) * p.spread);
    }
    *max_out = max;
    *sum_out = sum;
}

template <class T, class Group>
DEVICE void softmax_write(float (&h)[ROW_VECTORS][VECTOR], const softmax_params &p, void *y, int64_t at, int64_t n, float origin, float inverse) {
#pragma unroll
    for (int v = 0; v < ROW_VECTORS; v++) {
        const lane l = Group::vector(at, v, p.n, p.wide);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            const float e = exp2_approx((h[v][k] - origin) * p.spread) * inverse;
            h[v][k] = l.at + k < n ? e : 0.0f;
        }
        store<T>(h[v], y, l);
    }
}

template <class T, class Group> DEVICE void softmax_row(const softmax_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const int64_t batch = row / p.s, i = row - batch * p.s, n = visible(p.causal, i, p.s, p.n);
    const void *x = row_at<T>(p.x, batch, i);
    void *y = row_at<T>(p.y, batch, i);
    float h[ROW_VECTORS][VECTOR], own, sum;
    softmax_statistics<T, Group>(h, p, x, n, &own, &sum);
    const float max = group_max<Group::SIZE>(own), origin = softmax_origin(max);
    if (own != max) sum *= exp2_approx((own - origin) * p.spread);
    const float inverse = 1 / group_sum<Group::SIZE>(sum);
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        if (n > Group::PIECE) softmax_read<T, Group>(h, p, x, at, n);
        softmax_write<T, Group>(h, p, y, at, n, origin, inverse);
    }
}

ROW_ENTRIES_1(softmax, softmax_params, f32)
ROW_ENTRIES_1(softmax, softmax_params, bf16)
ROW_ENTRIES_1(softmax, softmax_params, f16)
