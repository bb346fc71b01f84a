/* SPDX-License-Identifier: Apache-2.0 */
/* What adamw's host side passes to its device side. */
#ifndef TRINE_SIMT_ADAMW_H
#define TRINE_SIMT_ADAMW_H

#include "backends/simt/core/params.h"

/* The step's scalars are computed in float64 and rounded once. */
typedef struct adamw_params {
    simt_walk walk;
    float decay, beta1, rest1, beta2, rest2, rate, inverse_root, eps;
    const float *grad_scale; /* NULL: 1 */
    bool copy_bf16;          /* the copy's type, not f16 */
} adamw_params;

#endif
