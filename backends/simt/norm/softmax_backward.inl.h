/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on devices. */
#include "softmax_backward_rows.h"

template <class T, class Group> DEVICE void softmax_backward_row(const softmax_backward_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const int64_t batch = p.rows == p.s ? 0 : row / p.s, i = row - batch * p.s;
    const typename Group::index n = (typename Group::index)visible(p.causal, i, p.s, p.n);
    void *dx = row_at<T>(p.dx, batch, i);
    softmax_gradient_row<T, Group>(row_at<T>(p.y, batch, i), row_at<T>(p.dy, batch, i), n, (typename Group::index)p.n,
                                   [&](const typename Group::lane &l, const auto &gradient) {
                                       float d[VECTOR];
                                       gradient(d, p.scale);
                                       put<T>(d, dx, l);
                                   });
}

template <class T> constexpr int softmax_backward_held(int) { return 1; }

ROW_ENTRIES_2(softmax_backward, softmax_backward_params, 1, f32)
ROW_ENTRIES_2(softmax_backward, softmax_backward_params, 1, bf16)
ROW_ENTRIES_2(softmax_backward, softmax_backward_params, 1, f16)
