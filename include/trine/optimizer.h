/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer steps and gradient clipping. */
#ifndef TRINE_OPTIMIZER_H
#define TRINE_OPTIMIZER_H

#include <trine/trine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_adamw_args {
    size_t struct_size; /* TRINE_ARGS(adamw) */
    const trine_tensor *param; /* in and out n */
    const trine_tensor *grad; /* in n */
    const trine_tensor *m; /* in and out n */
    const trine_tensor *v; /* in and out n */
    const trine_tensor *copy; /* out, optional n: param in another type */
    const trine_tensor *grad_scale; /* in, optional [1]: multiplies grad */
    float lr;
    float beta1; /* 0: 0.9 */
    float beta2; /* 0: 0.999 */
    float eps; /* 0: 1e-8 */
    float weight_decay;
    int64_t step; /* number of this step, from 1 */
} trine_adamw_args;

/* AdamW step */
TRINE_API trine_status trine_adamw(trine_queue *queue, const trine_adamw_args *args);

typedef struct trine_global_norm_clip_args {
    size_t struct_size; /* TRINE_ARGS(global_norm_clip) */
    const trine_tensor *x; /* in n */
    const trine_tensor *y; /* out, optional n; may be x */
    const trine_tensor *other_squares; /* in, optional g: sums of squares of tensors clipped together with this one */
    const trine_tensor *sum_squares; /* out, optional [1]: of x alone */
    const trine_tensor *norm; /* out, optional [1] */
    const trine_tensor *coefficient; /* out, optional [1]: min(1, max_norm / norm) */
    float max_norm; /* 0: no limit, coefficient is 1 */
} trine_global_norm_clip_args;

/* Clipping by the global norm */
TRINE_API trine_status trine_global_norm_clip(trine_queue *queue, const trine_global_norm_clip_args *args);

#ifdef __cplusplus
}
#endif

#endif
