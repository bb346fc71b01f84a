/* SPDX-License-Identifier: Apache-2.0 */
/* What sgd's host side passes to its device side. */
#ifndef TRINE_SIMT_SGD_H
#define TRINE_SIMT_SGD_H

#include "by_chance.h"

typedef struct sgd_params {
    simt_walk walk;
    float momentum, part, lr, weight_decay, scale; /* part: of g in moment */
    const float *told_lr;                          /* NULL: lr */
    const float *grad_scale;                       /* NULL: 1 */
    const float *found_inf;                        /* NULL: 0 */
    by_chance chances;
    bool nesterov, copy_bf16; /* the copy's type, not f16 */
} sgd_params;

#endif
