/* SPDX-License-Identifier: Apache-2.0 */
/* What adamw's host side passes to its device side. */
#ifndef TRINE_SIMT_ADAMW_H
#define TRINE_SIMT_ADAMW_H

#include "backends/simt/core/list.h"
#include "backends/simt/core/params.h"

/* The step's scalars are computed in float64 and rounded once: those that lr and the step's number make by the host, or
 * by a block of the device where only that has one of these. */
typedef struct adamw_scalars {
    float decay, rate, inverse_root;
} adamw_scalars;

typedef struct adamw_told_params {
    const float *lr; /* NULL: lr_here */
    const int64_t *step;
    double lr_here, weight_decay;
    double log1, log2; /* of the betas */
    int64_t step_here;
    adamw_scalars *scalars;
} adamw_told_params;
enum { ADAMW_TOLD_THREADS = 64 };

/* What is the same for all elements. */
typedef struct adamw_step {
    float beta1, rest1, beta2, rest2, eps;
    adamw_scalars scalars;
    const adamw_scalars *told; /* NULL: scalars */
    const float *grad_scale;   /* NULL: 1 */
    const float *found_inf;    /* NULL: 0 */
} adamw_step;

typedef struct adamw_params {
    simt_walk walk;
    adamw_step step;
    bool copy_bf16; /* the copy's type, not f16 */
} adamw_params;

/* Parameters of a list with one step. */
enum { ADAMW_LIST_VECTOR = 4, ADAMW_LIST_BLOCK = SIMT_THREADS * ADAMW_LIST_VECTOR };
typedef struct adamw_item {
    void *param, *m, *v, *copy; /* copy: NULL: absent */
    const void *grad;
    int64_t n;
    uint32_t first;                                       /* of its blocks */
    uint8_t param_type, grad_type, state_type, copy_type; /* simt_list_type */
} adamw_item;
enum { ADAMW_LIST = SIMT_LIST_BYTES / sizeof(adamw_item) };
typedef struct adamw_list_params {
    adamw_step step;
    int32_t count;
    adamw_item item[ADAMW_LIST];
} adamw_list_params;

#endif
