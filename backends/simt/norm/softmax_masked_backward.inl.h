/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_masked_backward on devices. */
#include "scores.inl.h"
#include "softmax_backward_rows.h"

template <class T, class Group> DEVICE void softmax_masked_backward_row(const softmax_masked_backward_params &p) {
    const int64_t row = Group::row();
    if (row >= p.shape.rows) return;
    const scores_place at = scores_row(p.shape, row);
    const typename Group::index n = (typename Group::index)scores_visible(p.shape, at);
    const void *y = scores_at<typename T::bits>(p.y, at), *dy = scores_at<typename T::bits>(p.dy, at);
    void *dx = scores_at<typename T::bits>(p.dx, at);
    softmax_gradient_row<T, Group>(y, dy, n, (typename Group::index)p.shape.n,
                                   [&](const typename Group::lane &l, const auto &gradient) {
                                       float d[VECTOR];
                                       gradient(d, p.scale);
                                       put<T>(d, dx, l);
                                       if (!p.dbias.data) return;
                                       gradient(d, 1.0f);
                                       if (sizeof(typename T::bits) == 4 || p.f32_bias)
                                           put<f32>(d, scores_at<f32::bits>(p.dbias, at), l);
                                       else
                                           put<T>(d, scores_at<typename T::bits>(p.dbias, at), l);
                                   });
}

template <class T> constexpr int softmax_masked_backward_held(int) { return 1; }

ROW_ENTRIES_2(softmax_masked_backward, softmax_masked_backward_params, 1, f32)
ROW_ENTRIES_2(softmax_masked_backward, softmax_masked_backward_params, 1, bf16)
ROW_ENTRIES_2(softmax_masked_backward, softmax_masked_backward_params, 1, f16)
