/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm on devices.
 *
 * NOTES. Floor: x once, y once; the passes behind the first find a row in the caches. */
#include "l1_norm_rows.inl.h"

/* The sum of a row's elements less `minus`, or of their sizes. */
template <class T> DEVICE float l1_sum(const l1_norm_params &p, int64_t row, float minus, bool sizes) {
    float sum = 0;
    l1_each(p.n, p.aligned, [&](const lane &l) {
        float x[VECTOR];
        load<T>(x, row_at<T>(p.x, row), l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            x[k] = within(l, k) ? x[k] - minus : 0.0f;
            x[k] = sizes ? magnitude(x[k]) : x[k];
        }
        sum += vector_sum(x);
    });
    return group_sum<SIMT_THREADS>(sum);
}

template <class T> DEVICE void l1_norm_row(const l1_norm_params &p) {
    const int64_t row = block_index();
    const float count = (float)p.n, near = l1_sum<T>(p, row, 0, false) / count,
                mean = near + l1_sum<T>(p, row, near, false) / count,
                rmad = 1.0f / (l1_sum<T>(p, row, mean, true) / count + p.eps);
    if (thread_index() == 0 && p.mean) p.mean[row] = mean;
    if (thread_index() == 0 && p.rmad) p.rmad[row] = rmad;
    l1_each(p.n, p.aligned, [&](const lane &l) {
        const lane columns = { l.at, l.n, p.weight_aligned };
        float x[VECTOR], weight[VECTOR], bias[VECTOR];
        load<T>(x, row_at<T>(p.x, row), l);
        l1_columns<T>(weight, p.weight, p.f32_weight, 1, columns);
        l1_columns<T>(bias, p.bias, p.f32_weight, 0, columns);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] = fused((x[k] - mean) * rmad, weight[k], bias[k]);
        store<T>(x, row_at<T>(p.y, row), l);
    });
}

ENTRY(l1_norm_f32, SIMT_THREADS, l1_norm_params) { l1_norm_row<f32>(p); }
ENTRY(l1_norm_bf16, SIMT_THREADS, l1_norm_params) { l1_norm_row<bf16>(p); }
ENTRY(l1_norm_f16, SIMT_THREADS, l1_norm_params) { l1_norm_row<f16>(p); }
