/* SPDX-License-Identifier: Apache-2.0 */
/* What lion's host side passes to its device side. */
#ifndef TRINE_SIMT_LION_H
#define TRINE_SIMT_LION_H

#include "optimizer.h"

/* What is the same for all elements. */
typedef struct lion_step {
    float beta1, rest1, beta2, rest2, lr, weight_decay;
    const float *told_lr;    /* NULL: lr */
    const float *grad_scale; /* NULL: 1 */
    const float *found_inf;  /* NULL: 0 */
    by_chance chances;
    bool stochastic; /* of a list: chances.on is that of the first alone */
} lion_step;

typedef struct lion_params {
    simt_walk walk;
    lion_step step;
    bool copy_bf16; /* the copy's type, not f16 */
} lion_params;

/* Of a list with one step. */
typedef struct lion_list_params {
    lion_step step;
    optimizer_list list;
} lion_list_params;

#endif
