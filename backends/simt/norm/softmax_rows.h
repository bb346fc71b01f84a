/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of softmax on devices. A row of one piece is read once; one of several twice, first for its maximum and sum by
 * online statistics.
 *
 * What is taken the softmax of is a Source, which has
 *     read<T, Group>(h, at, n, max)    the thread's scores of a piece, -Inf beyond what is visible and where it is
 *                                      hidden; the largest of them and max
 *     hide(h, v, inverse)              makes 0 of what read() hid of its vector v, if the product with inverse did not
 *     inverse(sum)                     what exponentials are multiplied by
 *     spread                           what differences of scores are, to give powers of two */
#ifndef TRINE_SIMT_SOFTMAX_ROWS_H
#define TRINE_SIMT_SOFTMAX_ROWS_H

#include "backends/simt/core/row.h"
#include "softmax.h"

/* What is subtracted for the maximum: of nothing but -Inf it must not be taken itself, lest exponentials be NaN that
 * are 0 once a larger element comes. If none comes the sum is 0. */
DEVICE float softmax_origin(float max) { return max == -infinity() ? 0 : max; }

/* Powers of the thread's items, in place; their sum. */
template <class Group>
DEVICE float softmax_powers(float (&h)[Group::VECTORS][VECTOR], float spread, typename Group::index at,
                            typename Group::index n, float origin) {
    float sum = 0;
    Group::each(at, n, [&](int v, const typename Group::lane &) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            h[v][k] = exp2_approx((h[v][k] - origin) * spread);
            sum += h[v][k];
        }
    });
    return sum;
}

/* y = h inverse, 0 where nothing is visible; `all` elements, of which n may be visible. */
template <class T, class Group, class Source>
DEVICE void softmax_write(const Source &source, float (&h)[Group::VECTORS][VECTOR], void *y, typename Group::index at,
                          typename Group::index n, typename Group::index all, float inverse) {
    Group::each(at, all, [&](int v, const typename Group::lane &l) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[v][k] = l.at + k < n ? h[v][k] * inverse : 0.0f;
        source.hide(h[v], v, inverse);
        put<T>(h[v], y, l);
    });
}

/* A row of several pieces. A thread's sum is brought to a new maximum at most once for each. */
template <class T, class Group, class Source>
DEVICE void softmax_long_row(const Source &source, void *y, typename Group::index n, typename Group::index all) {
    float h[Group::VECTORS][VECTOR], own = -infinity(), sum = 0;
    for (typename Group::index at = 0; at < n; at += Group::PIECE) {
        const float old = own;
        own = source.template read<T, Group>(h, at, n, old);
        if (own > old) sum *= exp2_approx((old - own) * source.spread);
        sum += softmax_powers<Group>(h, source.spread, at, n, softmax_origin(own));
    }
    const float max = group_max<Group::SIZE>(own), origin = softmax_origin(max);
    if (own != max) sum *= exp2_approx((own - origin) * source.spread);
    const float inverse = source.inverse(group_sum<Group::SIZE>(sum));
    for (typename Group::index at = 0; at < all; at += Group::PIECE) {
        source.template read<T, Group>(h, at, n, max);
        softmax_powers<Group>(h, source.spread, at, n, origin);
        softmax_write<T, Group>(source, h, y, at, n, all, inverse);
    }
}

template <class T, class Group, class Source>
DEVICE void softmax_any_row(const Source &source, void *y, typename Group::index n, typename Group::index all) {
    /* others than the largest groups are for rows that they hold */
    if constexpr (Group::SIZE == ROW_MOST || Group::VECTORS < ROW_VECTORS)
        if (all > Group::PIECE) return softmax_long_row<T, Group>(source, y, n, all);
    float h[Group::VECTORS][VECTOR];
    const float max = group_max<Group::SIZE>(source.template read<T, Group>(h, 0, n, -infinity()));
    const float sum = group_sum<Group::SIZE>(softmax_powers<Group>(h, source.spread, 0, n, softmax_origin(max)));
    softmax_write<T, Group>(source, h, y, 0, n, all, source.inverse(sum));
}

#endif
