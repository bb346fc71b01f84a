/* SPDX-License-Identifier: Apache-2.0 */
/* What adamw's host side passes to its device side. */
#ifndef TRINE_SIMT_ADAMW_H
#define TRINE_SIMT_ADAMW_H

#include "adamw_told.h"
#include "optimizer.h"

/* What is the same for all elements. */
typedef struct adamw_step {
    float beta1, rest1, beta2, rest2, eps;
    adamw_scalars scalars;
    const adamw_scalars *told; /* NULL: scalars */
    const float *grad_scale;   /* NULL: 1 */
    const float *found_inf;    /* NULL: 0 */
    by_chance chances;
    bool stochastic; /* of a list: chances.on is that of the first alone */
} adamw_step;

typedef struct adamw_params {
    simt_walk walk;
    adamw_step step;
    bool copy_bf16; /* the copy's type, not f16 */
} adamw_params;

/* Of a list with one step. */
typedef struct adamw_list_params {
    adamw_step step;
    optimizer_list list;
} adamw_list_params;

#endif
