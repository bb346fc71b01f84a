/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of kl_div, of jsd and of their gradients pass to their device sides. */
#ifndef TRINE_SIMT_DIVERGENCE_H
#define TRINE_SIMT_DIVERGENCE_H

#include "backends/simt/core/params.h"

/* Threads of a row, of short ones and of others. */
enum { DIVERGENCE_SHORT = 32, DIVERGENCE_SHORT_MOST = 2048 };

/* What a row's elements are. */
typedef enum row_kind { ROW_LOGS, ROW_LOGITS, ROW_PROBABILITIES } row_kind;

typedef struct divergence_params {
    simt_rows input, target, dinput;
    const float *weight, *dloss;
    float *loss;
    int64_t rows, v;
    row_kind of_input, of_target;
    float beta;
    float twice;   /* the scale of logits, which are halved so that their differences do not overflow */
    double factor; /* of the gradient */
} divergence_params;

#endif
