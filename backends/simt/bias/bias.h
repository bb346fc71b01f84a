/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of the ops of x + bias pass to their device sides: a thread has 8 columns of some rows, as in
 * sums over rows (columns.h), and so reads the bias once. */
#ifndef TRINE_SIMT_BIAS_H
#define TRINE_SIMT_BIAS_H

#include "backends/simt/core/columns.h"

typedef struct gelu_bias_params {
    columns_params columns;
    simt_rows x, bias, y;
    int32_t form;
    bool f32_bias;
} gelu_bias_params;

typedef struct gelu_bias_backward_params {
    columns_params columns; /* partial: of dbias, NULL if it is not asked for */
    simt_rows dy, x, bias, dx;
    int32_t form;
    bool f32_bias;
} gelu_bias_backward_params;

/* philox: dropout's key and stream; NULL: those of `dropout`. */
typedef struct dropout_add_params {
    columns_params columns;
    simt_rows x, bias, residual, y;
    simt_dropout dropout;
    const int64_t *philox;
    bool f32_bias;
} dropout_add_params;

typedef struct dropout_add_backward_params {
    columns_params columns;
    simt_rows dy, dx, dresidual;
    simt_dropout dropout;
    const int64_t *philox;
} dropout_add_backward_params;

#endif
