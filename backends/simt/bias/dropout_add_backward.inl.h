/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_add_backward on devices. */
#include "bias.inl.h"
#include "dropout_bits.h"

/* Stores dx, and adds it to the sums of its columns. */
template <class T> struct dropout_add_terms {
    const dropout_add_backward_params &p;
    const simt_dropout &dropout;
    template <bool WHOLE> DEVICE void add(float (&sum)[1][VECTOR], int64_t row, const lane &l) const {
        float dy[VECTOR];
        load_lane<T, WHOLE>(dy, row_at<T>(p.dy, row), l);
        if (p.dresidual.data) bias_store<T, WHOLE>(dy, p.dresidual, row, l);
        const uint32_t bits = dropout_bits(dropout, row, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            dy[k] = bits >> k & 1 ? dy[k] * dropout.scale : 0.0f;
            sum[0][k] += dy[k];
        }
        bias_store<T, WHOLE>(dy, p.dx, row, l);
    }
};

template <class T> DEVICE void dropout_add_gradient(const dropout_add_backward_params &p, const simt_dropout &dropout) {
    float *const partial[1] = { p.columns.partial };
    columns_block<1, 1>(p.columns, partial, dropout_add_terms<T>{ p, dropout });
}

#define DROPOUT_ADD_BACKWARD(T) \
    ENTRY_HELD(dropout_add_backward_##T, SIMT_THREADS, 2048 / SIMT_THREADS, dropout_add_backward_params) { \
        dropout_add_gradient<T>(p, p.dropout); \
    } \
    ENTRY(dropout_add_backward_told_##T, SIMT_THREADS, dropout_add_backward_params) { \
        dropout_add_gradient<T>(p, dropout_told(p.dropout, p.philox)); \
    }
DROPOUT_ADD_BACKWARD(f32)
DROPOUT_ADD_BACKWARD(bf16)
DROPOUT_ADD_BACKWARD(f16)
BIAS_FINISHES(dropout_add_backward)
