/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of which few neurons count, and matrices of which few elements change, or half are 0: activations cut at a
 * threshold, products that read no more weights than are needed, sparse updates in place, and two of four elements. */
#ifndef TRINE_SPARSE_H
#define TRINE_SPARSE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_gated_threshold_args {
    size_t struct_size;             /* sizeof(trine_gated_threshold_args) */
    const trine_tensor *x;          /* in r n */
    const trine_tensor *thresholds; /* in, optional n or 1, f32: instead of threshold */
    const trine_tensor *y;          /* out r n; may be x */
    const trine_tensor *mask;       /* out, optional r n, u8: 1 where kept */
    const trine_tensor *columns;    /* out, optional r n, i32: the kept columns of each row, then -1 */
    const trine_tensor *counts;     /* out, optional r, i32: how many they are */
    int32_t activation;             /* TRINE_ACTIVATION_*; of CATS TRINE_ACTIVATION_SILU */
    float threshold;                /* of |act(x)| */
} trine_gated_threshold_args;

/* An activation of which small values are left out: the gate of a layer whose other weights are then read only where
 * the gate is open (matvec_masked, matvec_sparse, matvec_rows).
 *
 *     y[i,j] = act(x[i,j]) where it is kept, else 0;  kept unless |act(x[i,j])| <= threshold
 *
 * What equals the threshold is left out. NaN, of x or of a threshold, is kept, so that it is seen. columns[i] lists the
 * columns that row i keeps, ascending, as indices for matvec_rows and matvec_sparse; behind them it has -1.
 *
 * The choice is the same on every device: act(x) is computed in f32 by operations that spec/sparse/gated_threshold.c
 * says one by one, and is compared before it is rounded to the type of y. Something that is kept may so be 0 in y. An
 * exponential below e^-80 is 0.
 *
 * Source: Lee et al. 2024 (CATS), section 3; without an activation Liu et al. 2024 (TEAL).
 *
 * Shapes: x, y, mask and columns are r n, thresholds is n or 1, counts is r. The last dimension is contiguous, leading
 * strides are free.
 * Types: x and y are f32, bf16 or f16, the same; thresholds f32, mask u8, columns and counts i32. Computation is in
 * f32, rounded once.
 * Parameters: threshold >= 0, and left 0 where thresholds are given; activation none, relu, gelu_tanh, gelu_erf or
 * silu.
 * Aliasing: y may be x. No other output may overlap another tensor.
 *
 * Error bound, besides the output's own rounding: 14 2^-24 |y| for silu, and for gelu_tanh and gelu_erf that times 1 +
 * |v| (1 - s) and 2 (1 + x^2) as spec/sparse/gated_threshold.c says. mask, columns and counts are exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a threshold beside thresholds; an output that overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (more than 2^31 - 1 columns; the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gated_threshold(trine_queue *queue, const trine_gated_threshold_args *args);

typedef struct trine_matvec_masked_args {
    size_t struct_size;       /* sizeof(trine_matvec_masked_args) */
    const trine_tensor *x;    /* in r k */
    const trine_tensor *w;    /* in n k */
    const trine_tensor *gate; /* in r n */
    const trine_tensor *y;    /* out r n; may be gate */
} trine_matvec_masked_args;

/* A product of few rows times a gate, computed where the gate is open.
 *
 *     y[i,j] = gate[i,j] sum_l x[i,l] w[j,l] where gate[i,j] is not 0, else 0
 *
 * A row of w whose gates are 0 in all rows of x is not read, whatever it holds; one that is read for a row of x does
 * not reach the others. A gate that is NaN is open. It is the first product behind gated_threshold; matvec_sparse is
 * the second. They are two ops, since what skips rows is summed over in the one and an output's place in the other, so
 * that no tensor but w has the same shape in both.
 *
 * Source: Lee et al. 2024 (CATS), section 4.
 *
 * Shapes: x is r k, w n k, gate and y are r n. The last dimension is contiguous, leading strides are free.
 * Types: f32, bf16 or f16, the same for all. Sums are in f32, and so is the product with the gate; rounded once.
 * Aliasing: y may be gate.
 *
 * Error bound, besides the output's own rounding: (k + 2) 2^-24 |gate[i,j]| times the sum of |x| |w|;
 * spec/sparse/matvec_masked.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; y
 * overlaps another tensor otherwise than said), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matvec_masked(trine_queue *queue, const trine_matvec_masked_args *args);

typedef struct trine_matvec_sparse_args {
    size_t struct_size;    /* sizeof(trine_matvec_sparse_args) */
    const trine_tensor *h; /* in r n */
    const trine_tensor *w; /* in n k */
    const trine_tensor *y; /* out r k */
} trine_matvec_sparse_args;

/* A product of few rows, many of whose elements are 0, with a matrix that is stored by what is summed over, so that a
 * row of it is read or not.
 *
 *     y[i,l] = sum of h[i,j] w[j,l] over the j where h[i,j] is not 0
 *
 * A row of w that is met by 0 in all rows of h is not read, whatever it holds, and 0 times Inf or NaN adds nothing.
 *
 * Source: Lee et al. 2024 (CATS), section 4.
 *
 * Shapes: h is r n, w n k, y r k. The last dimension is contiguous, leading strides are free.
 * Types: f32, bf16 or f16, the same for all. Sums are in f32, rounded once.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound, besides the output's own rounding: (n + 1) 2^-24 times the sum of |h| |w|; spec/sparse/matvec_sparse.c.
 * Deterministic: the same bits for any number of threads. The order of a sum follows from sizes and from what of h is
 * 0.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; y
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matvec_sparse(trine_queue *queue, const trine_matvec_sparse_args *args);

typedef struct trine_matvec_rows_args {
    size_t struct_size;       /* sizeof(trine_matvec_rows_args) */
    const trine_tensor *x;    /* in t k */
    const trine_tensor *w;    /* in m k */
    const trine_tensor *rows; /* in [t] r: places in w, for each row of x or for all */
    const trine_tensor *bias; /* in, optional m */
    const trine_tensor *y;    /* out t r */
    int32_t pad;              /* 1: a place of -1 gives 0 */
} trine_matvec_rows_args;

/* Products with some rows of a matrix: the logits of a few candidates, or the neurons of a fixed list.
 *
 *     y[i,a] = sum_l x[i,l] w[rows[i,a],l] + bias[rows[i,a]]
 *
 * rows is one list for all rows of x (missing or 1 in front), or one for each. A place that is not in [0, m) gives NaN;
 * with pad, one that is -1 gives 0, as in gather_rows: columns of gated_threshold are such a list. Rows of w that are
 * not named are not read.
 *
 * Source: by definition. Xu et al. 2025 (SpecEE) take logits of a few words so, Wang et al. 2024 (CoreInfer) the
 * neurons that a prompt has chosen.
 *
 * Shapes: x is t k, w m k, rows [t] r, bias m, y t r. The last dimension is contiguous, leading strides are free.
 * Types: x, w and bias are f32, bf16 or f16, the same; y of that type or f32; rows i32 or i64. Sums are in f32, rounded
 * once.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound, besides the output's own rounding: (k + 2) 2^-24 times the sum of |x| |w| and |bias|;
 * spec/sparse/matvec_rows.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matvec_rows(trine_queue *queue, const trine_matvec_rows_args *args);

typedef struct trine_scatter_axpy_args {
    size_t struct_size;        /* sizeof(trine_scatter_axpy_args) */
    const trine_tensor *w;     /* in and out m n */
    const trine_tensor *index; /* in p: places in w, ascending */
    const trine_tensor *d;     /* in p */
    const trine_tensor *saved; /* out, optional p: what w held there before */
    int32_t put;               /* 1: elements become d, instead of having it added */
    float alpha;               /* factor of d, not read with put; 0: 1 */
} trine_scatter_axpy_args;

/* Adds to some elements of a matrix in place, and takes that back to the bit: a sparse adapter that is put on a model.
 *
 *     w.flat[index[i]] = w.flat[index[i]] + alpha d[i],  with put d[i]
 *
 * w.flat[e] is the element of row e / n and column e % n, whatever the stride of rows. Other elements are not touched.
 * saved[i] is what w.flat[index[i]] held before the call. A second call with the same index, with put, and with saved
 * for d restores w bit for bit, which adding -alpha d does not; with another d and saved it exchanges two adapters.
 *
 * index ascends. Where it repeats a place, adding adds all of them in the order of i and rounds once, putting leaves
 * the last, and saved has for each of them what was there before the call, so that it still restores. An index that is
 * not in [0, m n), or is less than one in that range before it, is passed over: nothing is written for it but a saved
 * of 0. By that rule no list makes two threads meet, and the call that restores passes over the same.
 *
 * Source: Bhardwaj et al. 2024 (SHiRA), section 3.
 *
 * Shapes: w is m n, index, d and saved are p. The last dimension is contiguous, the leading stride is free.
 * Types: w and saved are f32, bf16 or f16, the same; d of that type or f32; index i32 or i64. Sums are in f32, in the
 * order of i, starting from what w held; rounded once. What is put is copied where d has the type of w, else rounded to
 * it.
 * Parameters: alpha is finite. As 0 stands for 1, write -0.0f for a zero.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound, besides the output's own rounding: 2 2^-24 (c + 1) times the sum of the absolute values, c being how
 * often the place is named; spec/sparse/scatter_axpy.c. saved is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE
 * (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_scatter_axpy(trine_queue *queue, const trine_scatter_axpy_args *args);

typedef struct trine_prune24_args {
    size_t struct_size;       /* sizeof(trine_prune24_args) */
    const trine_tensor *x;    /* in r n */
    const trine_tensor *y;    /* out, optional r n; may be x */
    const trine_tensor *mask; /* out, optional r n, u8: 1 where kept */
} trine_prune24_args;

/* Of each four elements of a row the two largest in size, and 0 for the others: the sparsity that the matrix units of
 * several makers multiply at twice the rate.
 *
 *     y[i,j] = x[i,j] where it is kept, else 0
 *
 * Of x[i,4g] to x[i,4g+3] the two with the largest |x| are kept, of equals the first. NaN goes before all numbers, so
 * that it is seen; -0 is as large as 0.
 *
 * Source: Mishra et al. 2021, "Accelerating sparse deep neural networks".
 *
 * Shapes: x, y and mask are r n, n a multiple of 4. The last dimension is contiguous, leading strides are free. At
 * least one output is needed.
 * Types: x and y are f32, bf16, f16 or i8, the same; mask u8.
 * Aliasing: y may be x. No other output may overlap another tensor.
 *
 * Error bound: y and mask are exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (x is NULL or no output is given; rank, sizes, strides or element types that the above
 * does not admit; an output that overlaps another tensor otherwise than said), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_prune24(trine_queue *queue, const trine_prune24_args *args);

typedef struct trine_pack24_args {
    size_t struct_size;          /* sizeof(trine_pack24_args) */
    const trine_tensor *x;       /* in r n */
    const trine_tensor *values;  /* out r h, h = n/2 */
    const trine_tensor *indices; /* out r q, u8, q = n/8 */
    int32_t prune;               /* 1: what is too many is left out */
} trine_pack24_args;

/* A matrix of which two of four elements are 0, packed into the others and their places: 9/16 of the bytes for bf16 and
 * f16, 5/8 for i8.
 *
 *     values[i,2g], values[i,2g+1] = x[i,4g+a], x[i,4g+b],  a < b the two places of the group that prune24 keeps
 *
 * indices has a + 4 b of group g in the lower half of its byte g/2 where g is even, else in the upper half. A group
 * with fewer than two that are not 0 has some of its zeros among the values. One with more has NaN for both; with
 * prune, and in i8, which has no NaN, those that are too many are left out as trine_prune24() leaves them out. -0
 * counts as 0.
 *
 * Source: Mishra et al. 2021; the layout by definition.
 *
 * Shapes: x is r n, n a multiple of 8, values r n/2, indices r n/8. The last dimension is contiguous, leading strides
 * are free.
 * Types: x and values are f32, bf16, f16 or i8, the same; indices u8.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: values and indices are exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; an
 * output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_pack24(trine_queue *queue, const trine_pack24_args *args);

typedef struct trine_unpack24_args {
    size_t struct_size;          /* sizeof(trine_unpack24_args) */
    const trine_tensor *values;  /* in r h, h = n/2 */
    const trine_tensor *indices; /* in r q, u8, q = n/8 */
    const trine_tensor *y;       /* out r n */
} trine_unpack24_args;

/* A matrix of which two of four elements are 0, from what trine_pack24() made of it.
 *
 *     y[i,4g+a] = values[i,2g]
 *     y[i,4g+b] = values[i,2g+1]
 *     y[i,j]    = 0 elsewhere
 *
 * a + 4 b is half a byte of indices, as of trine_pack24(). Any byte is valid: b may be less than a, and where both are
 * the same the second value is there.
 *
 * Source: Mishra et al. 2021; the layout by definition.
 *
 * Shapes: values is r n/2, indices r n/8, y r n, n a multiple of 8. The last dimension is contiguous, leading strides
 * are free.
 * Types: values and y are f32, bf16, f16 or i8, the same; indices u8.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound: y is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; y
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_unpack24(trine_queue *queue, const trine_unpack24_args *args);

typedef struct trine_matmul_sparse24_args {
    size_t struct_size;          /* sizeof(trine_matmul_sparse24_args) */
    const trine_tensor *x;       /* in m k */
    const trine_tensor *values;  /* in n h, h = k/2: w's */
    const trine_tensor *indices; /* in n q, u8, q = k/8: w's */
    const trine_tensor *bias;    /* in, optional n */
    const trine_tensor *y;       /* out m n */
    int32_t activation;          /* TRINE_ACTIVATION_* */
} trine_matmul_sparse24_args;

/* A product with a matrix of which two of four elements are 0, as trine_pack24() packs it.
 *
 *     y[i,j] = act(sum_p x[i,p] w[j,p] + bias[j])
 *
 * w is what trine_unpack24() makes of values and indices. Whether x is multiplied by w's zeros is the kernel's choice,
 * so that a row of y is of no use where that of x has Inf or NaN.
 *
 * Source: Mishra et al. 2021, with the activations of trine_matmul().
 *
 * Shapes: x is m k, k a multiple of 8, values n k/2, indices n k/8, bias n, y m n. Any size may be 0; k = 0 gives
 * act(bias). The last dimension is contiguous, leading strides are free.
 * Types: x and values are f32, f16, bf16 or i8, the same; indices u8; y is of their type, or f32 where that is f16 or
 * bf16, and bias f32 or of y's type. The sum is formed in f32 and rounded once, at the end. i8 gives i32, exact modulo
 * 2^32, with an i32 bias.
 * Parameters: with i8 the activation is none or relu.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound: that of trine_matmul() of x and w.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (no kernel of the device takes the call, as with i8 and an
 * activation other than relu), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul_sparse24(trine_queue *queue, const trine_matmul_sparse24_args *args);

#ifdef __cplusplus
}
#endif

#endif
