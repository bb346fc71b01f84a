/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm_backward on devices: sums over rows for dweight and dbias first, since dx may be dy, then rows.
 *
 * NOTES. Floor: dy and x once, dx once; the sums of columns read both again. */
#include "l1_norm_rows.inl.h"

DEVICE float l1_sign(float d) { return d > 0 ? 1.0f : d < 0 ? -1.0f : d; }

/* g = weight dy, and x less the mean; 0 beyond the row. */
template <class T> struct l1_vector {
    float g[VECTOR], d[VECTOR];

    DEVICE l1_vector(const l1_norm_backward_params &p, int64_t row, float mean, const lane &l) {
        float weight[VECTOR];
        load<T>(g, row_at<T>(p.dy, row), l);
        load<T>(d, row_at<T>(p.x, row), l);
        l1_columns<T>(weight, p.weight, p.f32_weight, 1, { l.at, l.n, p.weight_aligned });
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            g[k] = within(l, k) ? g[k] * weight[k] : 0.0f;
            d[k] = within(l, k) ? d[k] - mean : 0.0f;
        }
    }
};

template <class T> DEVICE void l1_norm_backward_row(const l1_norm_backward_params &p) {
    const int64_t row = block_index();
    const float mean = p.mean[row], rmad = p.rmad[row], count = (float)p.n;
    float sum_g = 0, sum_product = 0, sum_sign = 0;
    l1_each(p.n, p.aligned, [&](const lane &l) {
        const l1_vector<T> v(p, row, mean, l);
        float product[VECTOR], signs[VECTOR];
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            product[k] = v.g[k] * (v.d[k] * rmad);
            product[k] = within(l, k) ? product[k] : 0.0f;
            signs[k] = l1_sign(v.d[k]);
        }
        sum_g += vector_sum(v.g);
        sum_product += vector_sum(product);
        sum_sign += vector_sum(signs);
    });
    const float g = group_sum<SIMT_THREADS>(sum_g) / count, product = group_sum<SIMT_THREADS>(sum_product) / count,
                sign = group_sum<SIMT_THREADS>(sum_sign) / count;
    l1_each(p.n, p.aligned, [&](const lane &l) {
        l1_vector<T> v(p, row, mean, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) v.g[k] = rmad * ((v.g[k] - g) - (l1_sign(v.d[k]) - sign) * product);
        store<T>(v.g, row_at<T>(p.dx, row), l);
    });
}

/* Adds a row to the sums of dweight and dbias. */
template <class T> struct l1_norm_terms {
    const l1_norm_backward_params &p;

    template <bool WHOLE> DEVICE void add(float (&sum)[2][VECTOR], int64_t row, const lane &l) const {
        const float mean = p.mean[row], rmad = p.rmad[row];
        float dy[VECTOR], x[VECTOR];
        load_lane<T, WHOLE>(dy, row_at<T>(p.dy, row), l);
        load_lane<T, WHOLE>(x, row_at<T>(p.x, row), l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            sum[0][k] = fused(dy[k], (x[k] - mean) * rmad, sum[0][k]);
            sum[1][k] += dy[k];
        }
    }
};

#define L1_NORM_BACKWARD(T) \
    ENTRY(l1_norm_backward_##T, SIMT_THREADS, l1_norm_backward_params) { l1_norm_backward_row<T>(p); } \
    ENTRY(l1_norm_backward_columns_##T, SIMT_THREADS, l1_norm_backward_params) { \
        float *const partial[2] = { p.dweight, p.dbias }; \
        columns_block<2>(p.columns, partial, l1_norm_terms<T>{ p }); \
    } \
    ENTRY(l1_norm_backward_finish_##T, SIMT_THREADS, columns_params) { columns_finish<T>(p); }
L1_NORM_BACKWARD(f32)
L1_NORM_BACKWARD(bf16)
L1_NORM_BACKWARD(f16)
