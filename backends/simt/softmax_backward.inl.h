/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on devices. A row of one piece is read once, a longer one twice. */
#include "fetch.h"
#include "softmax.h"
#include "row.h"

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

#define SOFTMAX_BACKWARD_ROWS(T, G) \
    ENTRY_ASKING(softmax_backward_##T##_##G, row_threads(G), 1, softmax_backward_params) { softmax_backward_row<T, group<G, ROW_VECTORS, true>>(p); } \
    ENTRY(softmax_backward_ragged_##T##_##G, row_threads(G), softmax_backward_params) { softmax_backward_row<T, group<G, 1, false>>(p); }
#define SOFTMAX_BACKWARD_ENTRIES(T) \
    SOFTMAX_BACKWARD_ROWS(T, 8) \
    SOFTMAX_BACKWARD_ROWS(T, 32) \
    SOFTMAX_BACKWARD_ROWS(T, 128) \
    SOFTMAX_BACKWARD_ROWS(T, 256) \
    SOFTMAX_BACKWARD_ROWS(T, 512)
SOFTMAX_BACKWARD_ENTRIES(f32)
SOFTMAX_BACKWARD_ENTRIES(bf16)
SOFTMAX_BACKWARD_ENTRIES(f16)
