/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a matrix product with a bias: activations and dropout of x + bias, and gradients with the bias's. */
#ifndef TRINE_BIAS_H
#define TRINE_BIAS_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_gelu_bias_args {
    size_t struct_size;       /* sizeof(trine_gelu_bias_args) */
    const trine_tensor *x;    /* in r n */
    const trine_tensor *bias; /* in n */
    const trine_tensor *y;    /* out r n; may be x */
    int32_t form;             /* TRINE_GELU_* */
} trine_gelu_bias_args;

/* Gaussian error linear unit of the sum of rows and a bias.
 *
 *     h[i,j]             = x[i,j] + bias[j]
 *     TRINE_GELU_TANH: y = h/2 (1 + tanh(sqrt(2/pi) (h + 0.044715 h^3)))
 *     TRINE_GELU_ERF:  y = h/2 (1 + erf(h/sqrt 2))
 *
 * Source: Hendrycks and Gimpel 2016, section 2; fused with a bias: Narayanan et al. 2021 (Megatron-LM), section 4.2;
 * Aminabadi et al. 2022 (DeepSpeed Inference).
 *
 * Shapes: x and y are r n, their rows contiguous and any distance apart; bias is n.
 * Types: x and y are f32, bf16 or f16, the same; bias is f32 or of the same type. Computed in f32, rounded once: h is
 * not rounded to the type of x.
 * Ranges: both forms are exact in their far negative tails too. A sum h beyond f32 is as good as Inf.
 * Aliasing: y may be x.
 *
 * Error bound, besides the output's own rounding: 17 2^-24 |y| (1 + c), with c = |v| (1 - s), v = 2 sqrt(2/pi) (h +
 * 0.044715 h^3) and s = (1 + tanh(v/2))/2 for tanh, c = h^2 where h < 0, else 0, for erf; spec/bias/gelu_bias.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gelu_bias(trine_queue *queue, const trine_gelu_bias_args *args);

typedef struct trine_gelu_bias_backward_args {
    size_t struct_size;        /* sizeof(trine_gelu_bias_backward_args) */
    const trine_tensor *dy;    /* in r n */
    const trine_tensor *x;     /* in r n */
    const trine_tensor *bias;  /* in n */
    const trine_tensor *dx;    /* out r n; may be dy or x */
    const trine_tensor *dbias; /* out, optional n */
    int32_t form;              /* TRINE_GELU_* */
} trine_gelu_bias_backward_args;

/* Gradient of gelu_bias, from its inputs.
 *
 *     dx[i,j]  = dy[i,j] gelu'(x[i,j] + bias[j])
 *     dbias[j] = sum_i dx[i,j]
 *
 * gelu' is that of trine_gelu_backward(). dbias sums dx before it is rounded.
 *
 * Source: Hendrycks and Gimpel 2016, section 2, differentiated.
 *
 * Shapes: matrices are r n, their rows contiguous and any distance apart; bias and dbias are n.
 * Types: dy, x and dx are f32, bf16 or f16, the same; bias and dbias are f32 or of the same type, the same for both.
 * Computed in f32, rounded once.
 * Parameters: form is the forward's.
 * Aliasing: dx may be dy or x.
 *
 * Error bound, besides the output's own rounding: of dx 42 2^-24 of |dy| times what the derivative's errors multiply,
 * as of trine_gelu_backward(); of dbias min(r, 256) + r/1024 + 57, of the sum of those; spec/bias/gelu_bias_backward.c.
 * Deterministic: the same bits for any number of threads. dbias is summed by blocks of rows that depend on sizes alone,
 * in the workspace.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gelu_bias_backward(trine_queue *queue, const trine_gelu_bias_backward_args *args);

typedef struct trine_dropout_add_args {
    size_t struct_size;           /* sizeof(trine_dropout_add_args) */
    const trine_tensor *x;        /* in r n */
    const trine_tensor *bias;     /* in, optional n */
    const trine_tensor *residual; /* in, optional r n */
    const trine_tensor *philox;   /* in, optional [2], i64: key and stream of dropout, as of trine_dropout() */
    const trine_tensor *y;        /* out r n; may be x or residual */
    float p;                      /* probability of dropping, 0 <= p <= 1 */
    uint64_t seed;                /* 0 where philox is given */
    uint64_t offset;
} trine_dropout_add_args;

/* Dropout of the sum of rows and a bias, added to a residual.
 *
 *     y[i,j] = residual[i,j] + (x[i,j] + bias[j]) scale if element i n + j is kept, else residual[i,j]
 *
 * Kept are the elements that trine_dropout() keeps of a tensor of this shape with the same p, seed, offset and philox,
 * and scale = 1/(1-p), rounded to f32, is its scale. Without bias or residual those are 0. What x and bias hold where
 * an element is dropped has no effect. With p = 1 nothing is kept.
 *
 * Source: Srivastava et al. 2014, section 10; fused with a bias and a residual: Narayanan et al. 2021 (Megatron-LM),
 * section 4.2.
 *
 * Shapes: matrices are r n, their rows contiguous and any distance apart; bias is n.
 * Types: x, residual and y are f32, bf16 or f16, the same; bias is f32 or of the same type; philox is i64. Computed in
 * f32, rounded once.
 * Parameters: 0 <= p <= 1. Use another offset for every call of a training step. seed must be 0 where philox is given.
 * Aliasing: y may be x or residual.
 *
 * Error bound, besides the output's own rounding: 4 2^-24 (|x + bias| scale + |residual|); spec/bias/dropout_add.c.
 * Deterministic: the same bits for any number of threads, and the same mask on every device.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_dropout_add(trine_queue *queue, const trine_dropout_add_args *args);

typedef struct trine_dropout_add_backward_args {
    size_t struct_size;            /* sizeof(trine_dropout_add_backward_args) */
    const trine_tensor *dy;        /* in r n */
    const trine_tensor *philox;    /* in, optional [2], i64: the forward's */
    const trine_tensor *dx;        /* out r n; may be dy */
    const trine_tensor *dresidual; /* out, optional r n: a copy of dy */
    const trine_tensor *dbias;     /* out, optional n */
    float p;
    uint64_t seed;
    uint64_t offset;
} trine_dropout_add_backward_args;

/* Gradient of dropout_add, whose mask is made anew.
 *
 *     dx[i,j]        = dy[i,j] scale if element i n + j is kept, else 0
 *     dresidual[i,j] = dy[i,j]
 *     dbias[j]       = sum_i dx[i,j]
 *
 * The gradient at residual is dy itself: dresidual is for who needs it in another tensor. dbias sums dx before it is
 * rounded.
 *
 * Source: the derivative of trine_dropout_add()'s formula.
 *
 * Shapes: matrices are r n, their rows contiguous and any distance apart; dbias is n.
 * Types: dy, dx and dresidual are f32, bf16 or f16, the same; dbias is f32 or of the same type; philox is i64. Computed
 * in f32, rounded once.
 * Parameters: those of the forward. seed must be 0 where philox is given.
 * Aliasing: dx may be dy.
 *
 * Error bound, besides the output's own rounding: of dx 2 2^-24 |dx|, of dbias min(r, 256) + r/1024 + 18, of the sum of
 * |dx|; dresidual is exact; spec/bias/dropout_add_backward.c.
 * Deterministic: the same bits for any number of threads. dbias is summed by blocks of rows that depend on sizes alone,
 * in the workspace.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above; outputs are untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_dropout_add_backward(trine_queue *queue, const trine_dropout_add_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
