/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of doubles by integers. */
#ifndef TRINE_EXACT_H
#define TRINE_EXACT_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_int_matmul_exact_args {
    size_t struct_size;    /* sizeof(trine_int_matmul_exact_args) */
    const trine_tensor *a; /* in [g] m k */
    const trine_tensor *b; /* in [g] k n */
    const trine_tensor *d; /* out [g] m n */
    int32_t slices;        /* of an element; 0: 8 */
} trine_int_matmul_exact_args;

/* The matrix product of doubles by exact products of 8-bit integers, after Ozaki's scheme: for devices whose units for
 * doubles are slow, and for sums that are to have the same bits on every device.
 *
 * A row of a is taken in units of 2^E[i], the least power of two that is larger than its largest element, and an
 * element of it as `slices` digits: integers from -64 to 64, each the nearest to what those before have left.
 *
 *     a[i,p] 2^-E[i] = sum_s A[s,i,p] 2^(-6 - 7 s) + rest
 *
 * Columns of b, of exponents F[j], likewise. Then:
 *
 *     T[w,i,j] = sum_(s + t = w) sum_p A[s,i,p] B[t,p,j],  w = 0 .. slices - 1
 *     d[i,j]   = 2^(E[i] + F[j] - 12) sum_w T[w,i,j] 2^(-7 w)
 *
 * T is exact. The sum over w begins with the smallest terms, each step and the last scaling rounded once. A row or a
 * column that has NaN or Inf gives NaN.
 *
 * Of the exact product d is off by no more than the pairs of digits that are left out, the rests, and the roundings of
 * the sum:
 *
 *     k 2^(E[i] + F[j]) (slices + 3) 2^(-7 slices) + 3 u |d|,  u = 2^-53
 *
 * With 8 slices that is what a sum of doubles may be off, if the elements of a row are of one size; of elements far
 * below the row's largest less remains.
 *
 * Source: Ozaki, Ogita, Oishi and Rump 2012; by integers Ootomo, Ozaki and Yokota 2024.
 *
 * Shapes: a is [g] m k, b [g] k n, d [g] m n. The batch dimension may be missing in front of each. Any size may be 0; k
 * is at most 2^36.
 * Strides: in a and b either of the last two dimensions is contiguous, in d the last. All others are free.
 * Types: f64.
 * Parameters: slices is from 0, which stands for 8, to 16.
 * Aliasing: d may overlap no other tensor.
 *
 * Error bound: none against the above: d is the reference's to the bit.
 * Deterministic: the same bits on every device and for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor or parameter contradicts the above, or d overlaps), TRINE_ERR_UNSUPPORTED (the
 * device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_int_matmul_exact(trine_queue *queue, const trine_int_matmul_exact_args *args);

#ifdef __cplusplus
}
#endif

#endif
