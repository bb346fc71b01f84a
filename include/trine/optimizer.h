/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer steps and gradient clipping. */
#ifndef TRINE_OPTIMIZER_H
#define TRINE_OPTIMIZER_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_adamw_args {
    size_t struct_size;              /* sizeof(trine_adamw_args) */
    const trine_tensor *param;       /* in and out n */
    const trine_tensor *grad;        /* in n */
    const trine_tensor *m;           /* in and out n */
    const trine_tensor *v;           /* in and out n */
    const trine_tensor *copy;        /* out, optional n: param as bf16 or f16 */
    const trine_tensor *grad_scale;  /* in, optional [1], f32: multiplies grad */
    const trine_tensor *lr_tensor;   /* in, optional [1], f32: in place of lr */
    const trine_tensor *step_tensor; /* in, optional [1], i64: in place of step */
    const trine_tensor *found_inf;   /* in, optional [1], f32: if it is not 0, the step is skipped */
    float lr;                        /* learning rate, >= 0; 0 where lr_tensor is given */
    float beta1;                     /* 0 <= beta1 < 1; 0: 0.9 */
    float beta2;                     /* 0 <= beta2 < 1; 0: 0.999 */
    float eps;                       /* >= 0; 0: 1e-8 */
    float weight_decay;              /* >= 0 */
    int64_t step;                    /* number of this step, from 1; 0 where step_tensor is given */
} trine_adamw_args;

/* One AdamW step, in place. All parameters of a model are one list: trine_run_list().
 *
 * With b1 = beta1, b2 = beta2, t = step:
 *
 *     g     = grad_scale grad
 *     p     = param - lr weight_decay param
 *     m     = b1 m + (1-b1) g
 *     v     = b2 v + (1-b2) g^2
 *     param = p - lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps)
 *     copy  = param
 *
 * The decay is decoupled from the gradient, and the bias correction is applied to sqrt(v) before eps is added. m and v
 * enter param, and param enters copy, before they are rounded. The bias corrections are computed in f64 without
 * cancellation, so that any step is accurate. v should not be negative: its root is NaN.
 *
 * lr_tensor, step_tensor, grad_scale and found_inf are read when the op runs: a graph that was recorded takes what is
 * there each time it is launched. Where found_inf is not 0, NaN included, param, m and v stay as they are, whatever
 * grad has, and copy gets the unchanged param; step_tensor is the caller's to raise or not. A step_tensor below 1 is an
 * error on the CPU, and on devices makes param and copy NaN. lr_tensor is not looked at before it is used.
 *
 * Source: Loshchilov and Hutter 2019, algorithm 2.
 *
 * Shapes: all tensors are n, contiguous, but the last four, which are 1. grad_scale may be the coefficient of
 * trine_global_norm_clip(), or the reciprocal of a loss scale.
 * Types: param and grad are f32, bf16 or f16; m and v both f32 or both bf16. Arithmetic is f32, with one rounding for
 * each output. step_tensor is i64; grad_scale, lr_tensor and found_inf are f32.
 * Parameters: for a true zero in beta1, beta2 or eps pass -0.0.
 * Aliasing: no tensor may overlap another.
 *
 * Error bound, in units of 2^-24: m 4 of b1|m| + (1-b1)|g|; v 6 of b2 v + (1-b2)g^2; param and copy 24 of the length of
 * the step, with the error of v on top, and 4 of |param|(1 + lr weight_decay); spec/optimizer/adamw.c. g^2 beyond f32
 * may overflow.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; step below 1; a parameter out of range or not finite, or set beside the tensor that stands for it; overlap),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_adamw(trine_queue *queue, const trine_adamw_args *args);

typedef struct trine_global_norm_clip_args {
    size_t struct_size;                /* sizeof(trine_global_norm_clip_args) */
    const trine_tensor *x;             /* in n */
    const trine_tensor *y;             /* out, optional n; may be x */
    const trine_tensor *other_squares; /* in, optional g: sums of squares of tensors clipped together with this one */
    const trine_tensor *sum_squares;   /* out, optional [1], of the type of other_squares: of x alone */
    const trine_tensor *norm;          /* out, optional [1], f32 */
    const trine_tensor *coefficient;   /* out, optional [1], f32: min(1, max_norm / norm) */
    float max_norm;                    /* > 0; left 0: no limit, coefficient is 1 */
    int32_t own_included;              /* 1: other_squares, if given, has the sum of x too */
} trine_global_norm_clip_args;

/* Clipping by the global norm.
 *
 *     sum_squares = sum_i x[i]^2
 *     norm        = sqrt(sum_squares + sum_j other_squares[j]), without sum_squares if own_included
 *     coefficient = min(1, max_norm/norm), or 1 if max_norm is left 0
 *     y           = coefficient x
 *
 * Nothing is added to the norm. A gradient of many tensors is clipped by two lists of calls, trine_run_list(). The
 * first asks for sum_squares of each, all of them elements of one tensor. The second has that tensor as other_squares,
 * with own_included, and y. Or one call in its place, with an x of no elements, asks for the coefficient, by which a
 * list of trine_adamw() then multiplies: its grad_scale. That saves a pass over the gradient.
 *
 * Squares are exact and summed in f64, so that nothing overflows that has an f32 norm. Only sum_squares itself, as f32,
 * is Inf from 2^128 on: use f64 there. The coefficient is rounded to f32, then multiplied. A norm of Inf gives
 * coefficient 0, as one of 2^150 max_norm does, thus NaN where x is Inf. A norm of NaN gives NaN in coefficient and in
 * all of y, unless there is no limit. A norm of 0 gives coefficient 1, and coefficient 1 gives y = x exactly.
 *
 * Source: Pascanu et al. 2013, algorithm 1.
 *
 * Shapes: x and y are n, other_squares g, contiguous; the scalars have shape 1. At least one output is needed.
 * Types: x and y are f32, bf16 or f16; other_squares and sum_squares f32 or f64; norm and coefficient f32.
 * Parameters: max_norm > 0, or left 0 for no limit. A zero that is meant, -0.0f, is refused: it would make all of y
 * zero.
 * Aliasing: y may be x.
 *
 * Error bound: sum_squares n, norm n + g + 2, coefficient n + g + 4, each times 2^-53 of itself, and one rounding; y
 * 2*2^-24 of itself and one rounding; spec/optimizer/global_norm_clip.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (x is NULL or no output is given; rank, sizes, strides or element types that the above
 * does not admit; max_norm below 0 or not finite; an output overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_global_norm_clip(trine_queue *queue, const trine_global_norm_clip_args *args);

#ifdef __cplusplus
}
#endif

#endif
