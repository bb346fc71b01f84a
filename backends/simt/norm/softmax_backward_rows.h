/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of softmax's gradient on devices. A row of one piece is read once, a longer one twice. */
#ifndef TRINE_SIMT_SOFTMAX_BACKWARD_ROWS_H
#define TRINE_SIMT_SOFTMAX_BACKWARD_ROWS_H

#include "backends/simt/core/row.h"
#include "softmax.h"

/* Of `all` elements n are read. Write(lane, gradient) stores a vector, of which gradient(d, scale) makes the values. */
template <class T, class Group, class Write>
DEVICE void softmax_gradient_row(const void *y_row, const void *dy_row, typename Group::index n,
                                 typename Group::index all, const Write &write) {
    using index = typename Group::index;
    typename Group::template raw<T> y, dy;
    float sum = 0;
    for (index at = 0; at < n; at += Group::PIECE) {
        Group::template load<T>(y, y_row, at, n);
        Group::template load<T>(dy, dy_row, at, n);
        Group::each(at, n, [&](int v, const typename Group::lane &l) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) sum = within(l, k) ? fused(y[v].get(k), dy[v].get(k), sum) : sum;
        });
    }
    sum = group_sum<Group::SIZE>(sum);
    for (index at = 0; at < all; at += Group::PIECE) {
        if (n > Group::PIECE) {
            Group::template load<T>(y, y_row, at, n);
            Group::template load<T>(dy, dy_row, at, n);
        }
        Group::each(at, all, [&](int v, const typename Group::lane &l) {
            write(l, [&](float(&d)[VECTOR], float scale) {
#pragma unroll
                for (int k = 0; k < VECTOR; k++)
                    d[k] = l.at + k < n ? y[v].get(k) * (dy[v].get(k) - sum) * scale : 0.0f;
            });
        });
    }
}

#endif
