/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on devices. A row of one piece is read once, a longer one twice. */
#include "softmax.h"
#include "row.h"

/* The thread's items of y and dy. What the mask hides is not read as a number: it is 0. */
template <class T, class Group>
DEVICE void softmax_backward_read(float (&y)[ROW_VECTORS][VECTOR], float (&dy)[ROW_VECTORS][VECTOR], const softmax_backward_params &p, const void *y_row,
                                  const void *dy_row, int64_t at, int64_t n) {
    Group::each(at, n, p.wide, [&](int v, const lane &l) {
        load<T>(y[v], y_row, l);
        load<T>(dy[v], dy_row, l);
    });
}

template <class T, class Group> DEVICE void softmax_backward_row(const softmax_backward_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const int64_t batch = row / p.s, i = row - batch * p.s, n = visible(p.causal, i, p.s, p.n);
    const void *y_row = row_at<T>(p.y, batch, i), *dy_row = row_at<T>(p.dy, batch, i);
    void *dx_row = row_at<T>(p.dx, batch, i);
    float y[ROW_VECTORS][VECTOR], dy[ROW_VECTORS][VECTOR], sum = 0;
    for (int64_t at = 0; at < n; at += Group::PIECE) {
        softmax_backward_read<T, Group>(y, dy, p, y_row, dy_row, at, n);
        Group::each(at, n, p.wide, [&](int v, const lane &) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) sum = fused(y[v][k], dy[v][k], sum);
        });
    }
    sum = group_sum<Group::SIZE>(sum);
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        if (n > Group::PIECE) softmax_backward_read<T, Group>(y, dy, p, y_row, dy_row, at, n);
        Group::each(at, p.n, p.wide, [&](int v, const lane &l) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) dy[v][k] = l.at + k < n ? y[v][k] * (dy[v][k] - sum) * p.scale : 0.0f;
            store<T>(dy[v], dx_row, l);
        });
    }
}

ROW_ENTRIES_2(softmax_backward, softmax_backward_params, f32)
ROW_ENTRIES_2(softmax_backward, softmax_backward_params, bf16)
ROW_ENTRIES_2(softmax_backward, softmax_backward_params, f16)
