/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_bias on devices. */
#include "backends/simt/elementwise/gelu.h"
#include "bias.inl.h"

template <class T> struct gelu_bias_rows {
    const gelu_bias_params &p;
    float bias[VECTOR];
    DEVICE gelu_bias_rows(const gelu_bias_params &params) : p(params) {
        bias_load<T>(bias, p.bias, p.f32_bias, columns_place_of(p.columns).l);
    }
    template <bool WHOLE> DEVICE void at(int64_t row, const lane &l) const {
        float x[VECTOR], y[VECTOR];
        bool all = true; /* h is no number of T, so that y may be anywhere near the middle of two subnormal ones */
        load_lane<T, WHOLE>(x, row_at<T>(p.x, row), l);
        gelu_each<VECTOR>(p.form, [&](int k, auto form) {
            x[k] += bias[k];
            y[k] = form.template value<T>(x[k]);
            all = all && form.template serves<T>(y[k]);
        });
        if (!all)
            gelu_each<VECTOR>(p.form, [&](int k, auto form) {
                y[k] = form.template serves<T>(y[k]) ? y[k] : form.template value<f32>(x[k]);
            });
        bias_store<T, WHOLE>(y, p.y, row, l);
    }
};

#define GELU_BIAS(T) \
    ENTRY(gelu_bias_##T, SIMT_THREADS, gelu_bias_params) { bias_rows(p.columns, gelu_bias_rows<T>(p)); }
GELU_BIAS(f32)
GELU_BIAS(bf16)
GELU_BIAS(f16)
