/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products. */
#ifndef TRINE_MATMUL_H
#define TRINE_MATMUL_H

#include <trine/trine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* act(x). */
enum {
    TRINE_ACTIVATION_NONE = 0,
    TRINE_ACTIVATION_RELU = 1,      /* max(x, 0); NaN stays */
    TRINE_ACTIVATION_GELU_TANH = 2, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    TRINE_ACTIVATION_GELU_ERF = 3,  /* x/2 (1 + erf(x/sqrt 2)) */
    TRINE_ACTIVATION_SILU = 4       /* x / (1 + exp(-x)) */
};

typedef struct trine_matmul_args {
    size_t struct_size;       /* TRINE_ARGS(matmul) */
    const trine_tensor *a;    /* in [g] m k */
    const trine_tensor *b;    /* in [g] k n */
    const trine_tensor *c;    /* in, optional [g] m n */
    const trine_tensor *bias; /* in, optional n */
    const trine_tensor *d;    /* out [g] m n; may be c */
    float alpha;              /* 0: 1 */
    float beta;               /* 0: 1 */
    int32_t activation;       /* TRINE_ACTIVATION_* */
} trine_matmul_args;

/* Matrix product, batched, with addition, bias and activation:
 *
 *     d[g,i,j] = act(alpha sum_p a[g,i,p] b[g,p,j] + beta c[g,i,j] + bias[j])
 *
 * Source: level 3 BLAS, Dongarra et al. 1990, with the activations above (Hendrycks and Gimpel 2016).
 *
 * Shapes. a [g] m k, b [g] k n, d [g] m n; the batch dimension may be missing in front of each, and may be 1 in a or b: the same matrix then serves the
 * whole batch. c is broadcast: each of its dimensions may be 1, or missing in front. bias is n. Any size may be 0; k = 0 gives act(beta c + bias).
 * Strides. In a and b either of the last two dimensions is contiguous: a transposed operand is trine_tensor_transpose() of the tensor as it lies in memory.
 * In the others the last dimension is contiguous. All other strides are free.
 * Types. a and b are of one type; c has d's. f32 gives f32, f64 gives f64, f16 gives f16 or f32, bf16 gives bf16 or f32; bias has d's type, or is f32 where a is f16 or
 * bf16. The sum is formed in f32 (f64 for f64) and rounded once, at the end. i8 gives i32, exact modulo 2^32, with an i32 bias.
 * Parameters. alpha and beta are finite; as 0 stands for 1, write -0.0f for a zero. A factor of zero does not hide NaN or Inf: 0 NaN is NaN. With
 * i8 both are integers up to 2^24 and the activation is none or relu.
 * Aliasing. d may be the very view c; it may overlap no other tensor.
 * Error bound. |d - d64| <= u(d) |d64| + (k + 4) u(sum) 1.13 (|alpha| sum_p |a b| + |beta c| + |bias|), 1.13 being 1 for none and relu, and 12 u(sum) |t| where an activation is
 * applied to t. Products with a subnormal bf16 may be taken for zero.
 * Determinism. The same bits on the same device for any number of threads; the order of an element's sum depends on sizes and strides alone.
 * Errors. TRINE_ERR_ARGUMENT: a tensor or parameter contradicts the above, or d overlaps. TRINE_ERR_UNSUPPORTED: no kernel of the device takes the call, as
 * with i8 and a factor that is no integer. TRINE_ERR_WORKSPACE, TRINE_ERR_MEMORY, TRINE_ERR_DEVICE: see trine_status.
 * Since 0.1. */
TRINE_API trine_status trine_matmul(trine_queue *queue, const trine_matmul_args *args);

#ifdef __cplusplus
}
#endif

#endif
