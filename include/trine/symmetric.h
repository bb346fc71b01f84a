/* SPDX-License-Identifier: Apache-2.0 */
/* Products that are symmetric matrices, of which half is computed. */
#ifndef TRINE_SYMMETRIC_H
#define TRINE_SYMMETRIC_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_matmul_symmetric_args {
    size_t struct_size;    /* sizeof(trine_matmul_symmetric_args) */
    const trine_tensor *a; /* in [g] m k */
    const trine_tensor *c; /* in, optional [g] m m: symmetric */
    const trine_tensor *d; /* out [g] m m; may be c */
    float alpha;           /* 0: 1 */
    float beta;            /* factor of c, which asks for it: not 0 then, but -0.0f where a zero is meant */
} trine_matmul_symmetric_args;

/* The product of a matrix and its own transpose, of which half is computed and all is written.
 *
 *     d[g,i,j] = alpha sum_p a[g,i,p] a[g,j,p] + beta c[g,i,j],  i >= j
 *     d[g,j,i] = d[g,i,j]
 *
 * Of c only what is on the diagonal and below is read: it should be symmetric. d is so to the bit. A polynomial of a
 * symmetric matrix is made of such products, since then a a^T = a^2: b a + c a^2 is one call. The product a^T a is that
 * of trine_tensor_transpose() of a. A product that takes a as it lies, and multiplies twice as often, is trine_matmul()
 * with b a's transpose.
 *
 * Source: level 3 BLAS, Dongarra et al. 1990 (syrk), with both halves written as Jordan et al. 2024 (Muon) have it.
 *
 * Shapes: a is [g] m k, c and d are [g] m m. The batch dimension may be missing in front of each. Any size may be 0; k
 * = 0 gives beta c.
 * Strides: in a either of the last two dimensions is contiguous. In the others the last dimension is contiguous. All
 * other strides are free.
 * Types: a is f32, f64, bf16 or f16; c and d are of its type, or f32 where that is bf16 or f16. The sum is formed in
 * f32 (f64 for f64) and rounded once, at the end.
 * Parameters: alpha and beta are finite. As 0 stands for 1, write -0.0f for a zero alpha. With c, beta must be set, as
 * trine_matmul() has it: 1.0f to add c, or -0.0f for a true zero. A factor of zero does not hide NaN or Inf.
 * Aliasing: d may be the very view c. It may overlap no other tensor.
 *
 * Error bound, besides the output's own rounding: (k + 4) u(sum) (|alpha| sum_p |a a| + |beta c|), the sum counting
 * 2.25 times for bf16 and f16. Products with a subnormal bf16 may be taken for zero; spec/symmetric/matmul_symmetric.c.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or d overlaps), TRINE_ERR_UNSUPPORTED (the
 * device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul_symmetric(trine_queue *queue, const trine_matmul_symmetric_args *args);

#ifdef __cplusplus
}
#endif

#endif
