/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_masked on devices. */
#include "scores.inl.h"
#include "softmax_rows.h"

struct softmax_masked_source {
    const softmax_masked_params &p;
    const scores_place &place;
    const void *x;
    const float spread;
    mutable uint32_t visible[ROW_VECTORS] = {}; /* bits of the vectors that were read last */

    /* Bit k: is element k of a lane visible? What lies beyond n is not read. */
    template <class Lane> DEVICE uint32_t seen(const Lane &l, int64_t n) const {
        const uint8_t *mask = scores_at<uint8_t>(p.mask, place);
        uint32_t bits = 0;
        if (p.mask.step == 0) return mask[0] != 0 ? 0xffu : 0u;
        mask += l.at;
        if ((uintptr_t)mask % VECTOR == 0 && l.at + VECTOR <= n) {
            const packed<uint8_t, VECTOR> all = *(const packed<uint8_t, VECTOR> *)mask;
#pragma unroll
            for (int k = 0; k < VECTOR; k++) bits |= (uint32_t)(all.v[k] != 0) << k;
        } else {
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                if (l.at + k < n) bits |= (uint32_t)(mask[k] != 0) << k;
        }
        return bits;
    }

    template <class B, class Lane> DEVICE void add_bias(float (&h)[VECTOR], const Lane &l, int64_t n) const {
        const typename B::bits *bias = scores_at<typename B::bits>(p.bias, place);
        if (p.bias.step == 0) {
            const float one = B::get(bias[0]);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[k] = fused(h[k], p.f, one);
            return;
        }
        float v[VECTOR];
        load<B>(v, bias, lane{ l.at, n, ((uintptr_t)bias % 16 == 0) });
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[k] = fused(h[k], p.f, v[k]);
    }

    template <class T, class Lane> DEVICE void score(float (&h)[VECTOR], const Lane &l, int64_t n) const {
        if (!p.bias.data) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[k] *= p.f;
        } else if (sizeof(typename T::bits) == 4 || p.f32_bias) {
            add_bias<f32>(h, l, n);
        } else {
            add_bias<T>(h, l, n);
        }
    }

    template <class T, class Group>
    DEVICE float read(float (&h)[Group::VECTORS][VECTOR], typename Group::index at, typename Group::index n,
                      float max) const {
        Group::template load<T>(h, x, at, n);
        Group::each(at, n, [&](int v, const typename Group::lane &l) {
            visible[v] = p.mask.data ? seen(l, n) : 0xffu;
            score<T>(h[v], l, n);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                h[v][k] = within(l, k) && visible[v] >> k & 1 ? h[v][k] : -infinity();
                max = larger(max, h[v][k]);
            }
        });
        return max;
    }

    /* Exponentials of what is hidden are 0, and NaN only in a row of NaN. */
    DEVICE void hide(float (&h)[VECTOR], int v, float inverse) const {
        if (!p.mask.data || inverse == inverse) return;
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[k] = visible[v] >> k & 1 ? h[k] : 0.0f;
    }

    DEVICE float inverse(float sum) const { return sum == 0 ? 0 : 1 / sum; }
};

template <class T, class Group> DEVICE void softmax_masked_row(const softmax_masked_params &p) {
    const int64_t row = Group::row();
    if (row >= p.shape.rows) return;
    const scores_place at = scores_row(p.shape, row);
    const typename Group::index n = (typename Group::index)scores_visible(p.shape, at);
    void *y = scores_at<typename T::bits>(p.y, at);
    softmax_any_row<T, Group>(softmax_masked_source{ p, at, scores_at<typename T::bits>(p.x, at), p.spread }, y, n,
                              (typename Group::index)p.shape.n);
}

template <class T> constexpr int softmax_masked_held(int) { return 1; }

ROW_ENTRIES_1(softmax_masked, softmax_masked_params, ROW_VECTORS, f32)
ROW_ENTRIES_1(softmax_masked, softmax_masked_params, ROW_VECTORS, bf16)
ROW_ENTRIES_1(softmax_masked, softmax_masked_params, ROW_VECTORS, f16)
