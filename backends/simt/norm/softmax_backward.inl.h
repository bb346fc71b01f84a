/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on devices. A row of one piece is read once, a longer one twice. */
#include "softmax.h"
#include "backends/simt/core/row.h"

template <class T, class Group> DEVICE void softmax_backward_row(const softmax_backward_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const int64_t batch = p.rows == p.s ? 0 : row / p.s, i = row - batch * p.s;
    const index n = (index)visible(p.causal, i, p.s, p.n);
    const void *y_row = row_at<T>(p.y, batch, i), *dy_row = row_at<T>(p.dy, batch, i);
    void *dx_row = row_at<T>(p.dx, batch, i);
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
    for (index at = 0; at < (index)p.n; at += Group::PIECE) {
        if (n > Group::PIECE) {
            Group::template load<T>(y, y_row, at, n);
            Group::template load<T>(dy, dy_row, at, n);
        }
        Group::each(at, (index)p.n, [&](int v, const typename Group::lane &l) {
            float dx[VECTOR];
#pragma unroll
            for (int k = 0; k < VECTOR; k++) dx[k] = l.at + k < n ? y[v].get(k) * (dy[v].get(k) - sum) * p.scale : 0.0f;
            put<T>(dx, dx_row, l);
        });
    }
}

template <class T> constexpr int softmax_backward_held(int) { return 1; }

ROW_ENTRIES_2(softmax_backward, softmax_backward_params, 1, f32)
ROW_ENTRIES_2(softmax_backward, softmax_backward_params, 1, bf16)
ROW_ENTRIES_2(softmax_backward, softmax_backward_params, 1, f16)
