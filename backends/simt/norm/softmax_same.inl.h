/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on devices with the same bits as on every other (spec/same.h): a row by a block of 64 threads. */
#include "backends/simt/core/same.h"

template <class T> DEVICE void softmax_same(const softmax_params &p) {
    const int64_t row = block_index(), batch = row / p.s, i = row % p.s, n = visible(p.causal, i, p.s, p.n);
    const typename T::bits *x = row_at<T>(p.x, batch, i);
    typename T::bits *y = row_at<T>(p.y, batch, i);
    const float sign = p.scale < 0 ? -1.0f : 1.0f, twice = 2.0f * p.scale;
    float most = -infinity(), sum = 0;
    for (int64_t j = thread_index(); j < n; j += SAME_LANES) {
        const float value = sign * load_one<T>(x, j);
        most = value > most ? value : most;
    }
    const float m = product(sign * same_largest(most), 0.5f);
    const auto power = [&](int64_t j) { return same_exp(product(product(load_one<T>(x, j), 0.5f) - m, twice)); };
    for (int64_t j = thread_index(); j < n; j += SAME_LANES) sum += power(j);
    sum = same_total(sum);
    for (int64_t j = thread_index(); j < p.n; j += SAME_LANES) store_one<T>(y, j, j < n ? power(j) / sum : 0.0f);
}

#define SOFTMAX_SAME(T) \
    ENTRY(softmax_same_##T, SAME_LANES, softmax_params) { softmax_same<T>(p); }
SOFTMAX_SAME(f32)
SOFTMAX_SAME(bf16)
SOFTMAX_SAME(f16)
