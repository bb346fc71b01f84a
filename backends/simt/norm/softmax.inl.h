/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on devices. */
#include "softmax_rows.h"

struct softmax_source {
    const softmax_params &p;
    const void *x;
    const float spread;

    template <class T, class Group>
    DEVICE float read(float (&h)[Group::VECTORS][VECTOR], typename Group::index at, typename Group::index n,
                      float max) const {
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
    DEVICE void hide(float (&)[VECTOR], int, float) const {}
    /* of nothing but -Inf: y = 0/0 */
    DEVICE float inverse(float sum) const { return 1 / sum; }
};

template <class T, class Group> DEVICE void softmax_row(const softmax_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const int64_t batch = p.rows == p.s ? 0 : row / p.s, i = row - batch * p.s;
    const typename Group::index n = (typename Group::index)visible(p.causal, i, p.s, p.n);
    void *y = row_at<T>(p.y, batch, i);
    softmax_any_row<T, Group>(softmax_source{ p, row_at<T>(p.x, batch, i), p.spread }, y, n,
                              (typename Group::index)p.n);
}

template <class T> constexpr int softmax_held(int) { return 1; }

ROW_ENTRIES_1(softmax, softmax_params, ROW_VECTORS, f32)
ROW_ENTRIES_1(softmax, softmax_params, ROW_VECTORS, bf16)
ROW_ENTRIES_1(softmax, softmax_params, ROW_VECTORS, f16)

#include "softmax_same.inl.h"
