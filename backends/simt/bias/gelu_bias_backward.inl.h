/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_bias_backward on devices. */
#include "backends/simt/elementwise/gelu.h"
#include "bias.inl.h"

/* Stores dx, and adds it to the sums of its columns. */
template <class T> struct gelu_bias_terms {
    const gelu_bias_backward_params &p;
    float bias[VECTOR];
    DEVICE gelu_bias_terms(const gelu_bias_backward_params &params) : p(params) {
        bias_load<T>(bias, p.bias, p.f32_bias, columns_place_of(p.columns).l);
    }
    template <bool WHOLE> DEVICE void add(float (&sum)[1][VECTOR], int64_t row, const lane &l) const {
        float dy[VECTOR], x[VECTOR];
        load_lane<T, WHOLE>(dy, row_at<T>(p.dy, row), l);
        load_lane<T, WHOLE>(x, row_at<T>(p.x, row), l);
        gelu_each<VECTOR>(p.form, [&](int k, auto form) {
            dy[k] *= form.with_slope(x[k] + bias[k]).slope;
            sum[0][k] += dy[k];
        });
        bias_store<T, WHOLE>(dy, p.dx, row, l);
    }
};

#define GELU_BIAS_BACKWARD(T) \
    ENTRY(gelu_bias_backward_##T, SIMT_THREADS, gelu_bias_backward_params) { \
        float *const partial[1] = { p.columns.partial }; \
        columns_block<1, 1>(p.columns, partial, gelu_bias_terms<T>(p)); \
    }
GELU_BIAS_BACKWARD(f32)
GELU_BIAS_BACKWARD(bf16)
GELU_BIAS_BACKWARD(f16)
BIAS_FINISHES(gelu_bias_backward)
