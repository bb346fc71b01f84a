/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations and the products that follow them, in one call. */
#ifndef TRINE_FUSED_H
#define TRINE_FUSED_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_rms_norm_matmul_args {
    size_t struct_size;               /* sizeof(trine_rms_norm_matmul_args) */
    const trine_tensor *x;            /* in r k */
    const trine_tensor *weight;       /* in, optional k */
    const trine_tensor *residual;     /* in, optional r k: added to x before the norm */
    const trine_tensor *b;            /* in k n */
    const trine_tensor *bias;         /* in, optional n */
    const trine_tensor *y;            /* out r n */
    const trine_tensor *residual_out; /* out, optional r k; may be residual */
    const trine_tensor *rstd;         /* out, optional r, f32: for the gradient */
    float eps;                        /* 0: 1e-6 */
    float weight_offset;              /* added to weight where that is given; Gemma has 1 */
    int32_t activation;               /* TRINE_ACTIVATION_* of <trine/matmul.h> */
} trine_rms_norm_matmul_args;

/* Root-mean-square normalization of rows, multiplied by a matrix, with bias and activation.
 *
 *     h = x + residual
 *     rstd[i] = 1/sqrt(mean_p h[i,p]^2 + eps)
 *     y[i,j] = act(sum_p h[i,p] rstd[i] (weight[p] + weight_offset) b[p,j] + bias[j])
 *     residual_out = h
 *
 * This is trine_rms_norm() and trine_matmul() of its result, which is never whole in memory: panels of rows are
 * normalized into the workspace and multiplied while caches have them. A block of a transformer begins so, before
 * attention and before its MLP. trine check --exact-field shows that rstd may as well be applied after the product.
 *
 * Its gradient is that of its parts. With dz the gradient of what act is applied to (trine_gelu_backward() and others),
 * trine_matmul() of dz and b's transpose gives the gradient of the normalized rows, which trine_rms_norm_backward()
 * takes as dy, with h and rstd from here. The gradient of b is trine_matmul() of the transpose of trine_rms_norm()'s y,
 * made again, and dz, and that of bias the column sums of dz by trine_reduce_sum().
 *
 * Source: Zhang and Sennrich 2019, eq. 4; the case study of Wu et al. 2025 (Mirage).
 *
 * Shapes: x, residual and residual_out are r k, weight is k, b k n, bias n, y r n and rstd r. Any size may be 0; k = 0
 * gives act(bias).
 * Strides: in b either of the last two dimensions is contiguous. A transposed operand is trine_tensor_transpose() of
 * the tensor as it lies in memory, n k as linear layers have it. In the others the last dimension is contiguous. All
 * other strides are free.
 * Types: x and b are f32, bf16 or f16, the same for both. residual and residual_out have one type, x's or f32, weight
 * has x's type or f32; y has x's type, or is f32; bias has y's type, or is f32. Sums are formed in f32. The normalized
 * rows may be rounded to x's type before they are multiplied, as trine_rms_norm() does, and y is rounded once, at the
 * end. rstd is of h before that is rounded to residual_out's type.
 * Parameters: eps is at least 0; 0 means 1e-6, write -0.0f for a true zero. weight_offset is finite.
 * Aliasing: residual_out may be the very view residual. An output may overlap no other tensor.
 *
 * Error bound, with N the normalized row: (k + 4) 2^-24 1.13 (sum_p |N b| + |bias|) as trine_matmul() has it, the sum
 * counting 2.25 times for bf16 and f16, and 1.13 sum_p e |b|, where e is what trine_rms_norm() may be off by,
 * u(x) |N| + (min(k, 256) + k/1024 + 32) 2^-24 |N|; 1.13 is 1 for none and relu. spec/fused/rms_norm_matmul.c. Where a
 * normalized element leaves x's type, its row may be Inf or NaN.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or an output overlaps),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_rms_norm_matmul(trine_queue *queue, const trine_rms_norm_matmul_args *args);

#ifdef __cplusplus
}
#endif

#endif
