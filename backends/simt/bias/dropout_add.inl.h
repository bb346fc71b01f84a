/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_add on devices. */
#include "bias.inl.h"
#include "dropout_bits.h"

template <class T> struct dropout_add_rows {
    const dropout_add_params &p;
    const simt_dropout &dropout;
    float bias[VECTOR];
    DEVICE dropout_add_rows(const dropout_add_params &params, const simt_dropout &d) : p(params), dropout(d) {
        bias_load<T>(bias, p.bias, p.f32_bias, columns_place_of(p.columns).l);
    }
    template <bool WHOLE> DEVICE void at(int64_t row, const lane &l) const {
        float x[VECTOR], residual[VECTOR] = {};
        load_lane<T, WHOLE>(x, row_at<T>(p.x, row), l);
        if (p.residual.data) load_lane<T, WHOLE>(residual, row_at<T>(p.residual, row), l);
        const uint32_t bits = dropout_bits(dropout, row, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] = (bits >> k & 1 ? (x[k] + bias[k]) * dropout.scale : 0.0f) + residual[k];
        bias_store<T, WHOLE>(x, p.y, row, l);
    }
};

/* As many threads as an SM can hold: the words take longer than memory does. */
#define DROPOUT_ADD(T) \
    ENTRY_HELD(dropout_add_##T, SIMT_THREADS, 2048 / SIMT_THREADS, dropout_add_params) { \
        bias_rows(p.columns, dropout_add_rows<T>(p, p.dropout)); \
    } \
    ENTRY(dropout_add_told_##T, SIMT_THREADS, dropout_add_params) { \
        const simt_dropout told = dropout_told(p.dropout, p.philox); \
        bias_rows(p.columns, dropout_add_rows<T>(p, told)); \
    }
DROPOUT_ADD(f32)
DROPOUT_ADD(bf16)
DROPOUT_ADD(f16)
