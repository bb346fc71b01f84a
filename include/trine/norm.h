/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and normalizations. */
#ifndef TRINE_NORM_H
#define TRINE_NORM_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_softmax_args {
    size_t struct_size;    /* sizeof(trine_softmax_args) */
    const trine_tensor *x; /* in [g] s n */
    const trine_tensor *y; /* out [g] s n; may be x */
    float scale;           /* 0: 1 */
    int32_t causal;        /* 1: element j of row i is visible iff j <= i + n - s */
} trine_softmax_args;

/* Softmax over the last dimension, with a scale and a causal mask.
 *
 *     y[g,i,j] = exp(scale x[g,i,j]) / sum_k exp(scale x[g,i,k]),  the sum over the visible k
 *
 * causal masks from the bottom right: j is visible iff j <= i + n - s. A masked element gives exactly 0, and what x
 * holds there is never read as a number. A row with none visible is 0. A visible NaN makes its row NaN, as does Inf
 * scale x, and a row of nothing but -Inf.
 *
 * Finite x may be of any size, scale x too: only their differences count.
 *
 * Source: Milakov and Gimelshein 2018, for long rows.
 *
 * Shapes: x and y are [g] s n; g may be left out. The last dimension is contiguous, other strides are free.
 * Types: f32, bf16 or f16, the same for both. Accumulation is f32, with one rounding at the end.
 * Parameters: scale is at most 2^126 in size. 0 means 1, -0.0 means zero.
 * Aliasing: y may be x.
 *
 * Error bound: relative to y, min(n, 256) + n/1024 + n/64 + 88 in units of 2^-24, and 5*2^-24 for each unit of the
 * distance of scale x from the row's maximum. The derivation is in spec/norm/softmax.c; trine_error_bound() gives the
 * coefficient.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; scale not finite or beyond 2^126; an output that overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_softmax(trine_queue *queue, const trine_softmax_args *args);

typedef struct trine_softmax_backward_args {
    size_t struct_size;     /* sizeof(trine_softmax_backward_args) */
    const trine_tensor *y;  /* in [g] s n; the forward's output */
    const trine_tensor *dy; /* in [g] s n */
    const trine_tensor *dx; /* out [g] s n; may be y or dy */
    float scale;            /* 0: 1 */
    int32_t causal;
} trine_softmax_backward_args;

/* Gradient of softmax, from its output.
 *
 *     dx[g,i,j] = scale y[g,i,j] (dy[g,i,j] - sum_k y[g,i,k] dy[g,i,k]),  the sum over the visible k
 *
 * Where the causal mask hides j, dx is 0, and neither y nor dy is read as a number.
 *
 * Source: the derivative of trine_softmax()'s formula.
 *
 * Shapes: y, dy and dx are [g] s n; g may be left out. The last dimension is contiguous, other strides are free.
 * Types: f32, bf16 or f16, the same for all. Accumulation is f32, with one rounding at the end.
 * Parameters: scale and causal are the forward's.
 * Aliasing: dx may be y or dy.
 *
 * Error bound: min(n, 256) + n/1024 + 22 in units of 2^-24, of |scale y| (|dy| + sum |y dy|);
 * spec/norm/softmax_backward.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; scale not finite; an output that overlaps another tensor otherwise than said), TRINE_ERR_UNSUPPORTED (the
 * device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_softmax_backward(trine_queue *queue, const trine_softmax_backward_args *args);

typedef struct trine_softmax_masked_args {
    size_t struct_size;       /* sizeof(trine_softmax_masked_args) */
    const trine_tensor *x;    /* in [b] [h] sq sk */
    const trine_tensor *mask; /* in, optional [b] [h] [sq] sk, u8: 0 where hidden; any of them may be 1 */
    const trine_tensor *bias; /* in, optional [b] [h] [sq] sk: added to scores; any of them may be 1 */
    const trine_tensor *y;    /* out [b] [h] sq sk; may be x */
    float scale;              /* 0: 1 */
    int32_t causal;           /* 1: element j of row i is visible only if j <= i + sk - sq */
} trine_softmax_masked_args;

/* Softmax over the last dimension of attention's scores, with a scale, a mask, a bias and a causal mask.
 *
 *     z[b,h,i,j] = scale x[b,h,i,j] + bias[b,h,i,j]
 *     y[b,h,i,j] = exp(z[b,h,i,j]) / sum_k exp(z[b,h,i,k]),  the sum over the visible k
 *
 * j is visible in row i iff mask[b,h,i,j] is not 0 and, if causal is set, j <= i + sk - sq: the causal mask is aligned
 * at the bottom right. A hidden element gives exactly 0, and what x and bias hold there is never read as a number. A
 * row with none visible, or with nothing but visible scores z of -Inf, is 0, as in trine_attention(). Otherwise a
 * visible NaN, or z = Inf, makes NaN of what is visible in its row.
 *
 * Ranges: without bias only differences of scale x count, which may be of any size. With it what is beyond f32 becomes
 * Inf in z.
 *
 * Source: Narayanan et al. 2021 (Megatron-LM), section 4.2: the scaled masked softmax, whose mask there gives scores of
 * -10000, and here 0 in y. Milakov and Gimelshein 2018, for long rows.
 *
 * Shapes: x and y are [b] [h] sq sk; dimensions in front may be left out. mask and bias are [b] [h] [sq] sk: of both
 * any dimension may be 1, and those in front may be missing. The last dimension is contiguous, other strides are free.
 * Types: x and y are f32, bf16 or f16, the same for both; bias is f32 or of the same type, mask u8. Accumulation is
 * f32, with one rounding at the end.
 * Parameters: scale is at most 2^126 in size. 0 means 1, -0.0 means zero.
 * Aliasing: y may be x.
 *
 * Error bound: relative to y, min(sk, 256) + sk/1024 + sk/64 + 88 in units of 2^-24, and 5*2^-24 for each unit of the
 * distance of z from the row's maximum. With bias besides what 2^-24 (|scale x| + |z|) does through the exponential;
 * spec/norm/softmax_masked.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; scale not finite or beyond 2^126; an output that overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_softmax_masked(trine_queue *queue, const trine_softmax_masked_args *args);

typedef struct trine_softmax_masked_backward_args {
    size_t struct_size;        /* sizeof(trine_softmax_masked_backward_args) */
    const trine_tensor *y;     /* in [b] [h] sq sk; the forward's output */
    const trine_tensor *dy;    /* in [b] [h] sq sk */
    const trine_tensor *dx;    /* out [b] [h] sq sk; may be y or dy */
    const trine_tensor *dbias; /* out, optional [b] [h] sq sk */
    float scale;               /* 0: 1 */
    int32_t causal;
} trine_softmax_masked_backward_args;

/* Gradient of softmax_masked, from its output.
 *
 *     dz[b,h,i,j]    = y[b,h,i,j] (dy[b,h,i,j] - sum_k y[b,h,i,k] dy[b,h,i,k])
 *     dx[b,h,i,j]    = scale dz[b,h,i,j]
 *     dbias[b,h,i,j] = dz[b,h,i,j]
 *
 * Where the mask hides j, y is 0, and so are dx and dbias wherever dy is finite: the mask is not needed. Where the
 * causal mask hides j they are 0 too, and neither y nor dy is read as a number. The gradient at a bias that was
 * broadcast is the sum of dbias over what it was broadcast to.
 *
 * Source: the derivative of trine_softmax_masked()'s formula.
 *
 * Shapes: all are [b] [h] sq sk; dimensions in front may be left out. The last dimension is contiguous, other strides
 * are free.
 * Types: y, dy and dx are f32, bf16 or f16, the same for all; dbias is f32 or of the same type. Accumulation is f32,
 * with one rounding at the end.
 * Parameters: scale and causal are the forward's.
 * Aliasing: dx may be y or dy.
 *
 * Error bound: min(sk, 256) + sk/1024 + 22 in units of 2^-24, of |scale y| (|dy| + sum |y dy|), of dbias without scale;
 * spec/norm/softmax_backward.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; scale not finite; an output that overlaps another tensor otherwise than said), TRINE_ERR_UNSUPPORTED (the
 * device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_softmax_masked_backward(trine_queue *queue,
                                                     const trine_softmax_masked_backward_args *args);

/* Where the norms round to the element type of y. */
enum {
    TRINE_ROUND_ONCE = 0,         /* once, at the end */
    TRINE_ROUND_BEFORE_WEIGHT = 1 /* the normalized value too, before it is multiplied by
                                   * weight: as Llama's reference does */
};

typedef struct trine_rms_norm_args {
    size_t struct_size;               /* sizeof(trine_rms_norm_args) */
    const trine_tensor *x;            /* in r n */
    const trine_tensor *weight;       /* in, optional n */
    const trine_tensor *residual;     /* in, optional r n */
    const trine_tensor *philox;       /* in, optional [2], i64: key and stream of dropout, as of trine_dropout() */
    const trine_tensor *y;            /* out r n; may be x */
    const trine_tensor *residual_out; /* out, optional r n: h; may be residual */
    const trine_tensor *rstd;         /* out, optional r */
    float eps;                        /* 0: 1e-6 */
    float weight_offset;              /* added to weight; Gemma has 1 */
    int32_t rounding;                 /* TRINE_ROUND_* */
    float dropout;                    /* probability of dropping an element of x, 0 <= dropout < 1 */
    uint64_t seed;
    uint64_t offset;
} trine_rms_norm_args;

/* Root-mean-square normalization, with optional dropout and residual addition before it.
 *
 *     h            = dropout(x) + residual
 *     rstd[i]      = 1/sqrt(mean_j h[i,j]^2 + eps)
 *     y[i,j]       = h[i,j] rstd[i] (weight[j] + weight_offset)
 *     residual_out = h
 *
 * Without weight its factor is 1, whatever weight_offset is. TRINE_ROUND_BEFORE_WEIGHT rounds h rstd to the type of y
 * before it is multiplied.
 *
 * Dropout keeps and scales the elements of x that trine_dropout() with p = dropout, seed, offset and philox does.
 * Element j of row i is its element i n + j, the same on every device. With philox, whose numbers only the device has,
 * devices mask x in y first, which takes a pass more.
 *
 * Ranges: h may be of any finite size. A row whose mean square f32 does not have is normalized times a power of two. A
 * row whose sum x + residual is beyond f32 gives NaN. rstd rounds as f32 does: of a mean square above 2^252 it is
 * subnormal, below 2^-256, eps with it, it is Inf, and y is right all the same. A row of zeros with eps = 0 gives NaN.
 *
 * Source: Zhang and Sennrich 2019, eq. 4.
 *
 * Shapes: matrices are r n, their rows contiguous and any distance apart; weight is n; rstd is r.
 * Types: x and y are f32, bf16 or f16. residual and residual_out are of the same type or f32; so is weight, on its own.
 * rstd is f32, philox i64. Accumulation and statistics are f32; y is computed from the unrounded h.
 * Parameters: eps >= 0; 0 means 1e-6, -0.0 zero. 0 <= dropout < 1. seed must be 0 where philox is given.
 * Aliasing: y may be x, residual_out may be residual.
 *
 * Error bound: of y and rstd min(n, 256) + n/1024 + 32 in units of 2^-24, relative. Of residual_out its rounding and
 * those of the product and sum that make h; spec/norm/rms_norm.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite or outside its range; an output that overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_rms_norm(trine_queue *queue, const trine_rms_norm_args *args);

typedef struct trine_rms_norm_backward_args {
    size_t struct_size;            /* sizeof(trine_rms_norm_backward_args) */
    const trine_tensor *dy;        /* in r n */
    const trine_tensor *h;         /* in r n: what was normalized (residual_out, or x) */
    const trine_tensor *weight;    /* in, optional n */
    const trine_tensor *rstd;      /* in r */
    const trine_tensor *dresidual; /* in, optional r n: gradient that arrives at h by the residual stream */
    const trine_tensor *philox;    /* in, optional [2], i64: the forward's */
    const trine_tensor *dx;        /* out r n: gradient at x; may be dy */
    const trine_tensor *dh;        /* out, optional r n: gradient at h, thus at residual; may be dresidual */
    const trine_tensor *dweight;   /* out, optional n */
    float weight_offset;
    float dropout;
    uint64_t seed;
    uint64_t offset;
} trine_rms_norm_backward_args;

/* Gradient of rms_norm, from the h it normalized (residual_out, or x) and the rstd it saved.
 *
 *     xhat       = h rstd
 *     g          = (weight + weight_offset) dy
 *     dh         = rstd (g - xhat mean_j(g xhat)) + dresidual
 *     dx         = dropout's mask and scale applied to dh
 *     dweight[j] = sum_i dy[i,j] xhat[i,j]
 *
 * dh is the gradient at residual. Without weight its factor is 1. Of philox trine_dropout() tells; with it devices mask
 * dx afterwards, which takes a pass more.
 *
 * Source: Zhang and Sennrich 2019, section 4.1.
 *
 * Shapes: matrices are r n, their rows contiguous and any distance apart; weight and dweight are n; rstd is r.
 * Types: dy and dx are f32, bf16 or f16. h, dresidual and dh are of the same type or f32; so are weight and dweight, on
 * their own. rstd is f32, philox i64. Accumulation is f32; dx is computed from the unrounded dh.
 * Parameters: those of the forward. seed must be 0 where philox is given.
 * Aliasing: dx may be dy, dh may be dresidual.
 *
 * Error bound: of dx and dh min(n, 256) + n/1024 + 34 in units of 2^-24, of rstd (|g| + |xhat| mean|g xhat|) +
 * |dresidual|. Of dweight min(r, 256) + r/1024 + 19, of sum |dy xhat|; spec/norm/norm_backward.h.
 * Deterministic: the same bits for any number of threads. dweight is summed by blocks of rows that depend on r alone,
 * in the workspace.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite or outside its range; an output that overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_rms_norm_backward(trine_queue *queue, const trine_rms_norm_backward_args *args);

typedef struct trine_layer_norm_args {
    size_t struct_size;               /* sizeof(trine_layer_norm_args) */
    const trine_tensor *x;            /* in r n */
    const trine_tensor *weight;       /* in, optional n */
    const trine_tensor *bias;         /* in, optional n */
    const trine_tensor *residual;     /* in, optional r n */
    const trine_tensor *philox;       /* in, optional [2], i64: key and stream of dropout, as of trine_dropout() */
    const trine_tensor *y;            /* out r n; may be x */
    const trine_tensor *residual_out; /* out, optional r n: h; may be residual */
    const trine_tensor *mean;         /* out, optional r */
    const trine_tensor *rstd;         /* out, optional r */
    float eps;                        /* 0: 1e-5 */
    float weight_offset;
    int32_t rounding; /* TRINE_ROUND_* */
    float dropout;
    uint64_t seed;
    uint64_t offset;
} trine_layer_norm_args;

/* Layer normalization, with optional dropout and residual addition before it.
 *
 *     h            = dropout(x) + residual
 *     mean[i]      = mean_j h[i,j]
 *     rstd[i]      = 1/sqrt(mean_j (h[i,j] - mean[i])^2 + eps)
 *     y[i,j]       = (h[i,j] - mean[i]) rstd[i] (weight[j] + weight_offset) + bias[j]
 *     residual_out = h
 *
 * Without weight its factor is 1, whatever weight_offset is; without bias 0 is added. The deviations are summed, never
 * the difference of large sums: a mean far beyond the spread does no harm. TRINE_ROUND_BEFORE_WEIGHT rounds (h - mean)
 * rstd to the type of y before it is multiplied.
 *
 * Dropout keeps and scales the elements of x that trine_dropout() with p = dropout, seed, offset and philox does.
 * Element j of row i is its element i n + j, the same on every device. With philox, whose numbers only the device has,
 * devices mask x in y first, which takes a pass more.
 *
 * Ranges: h may be of any finite size. A row whose variance f32 does not have is normalized times a power of two. A row
 * whose sum x + residual is beyond f32 gives NaN. rstd rounds as f32 does: of a variance above 2^252 it is subnormal,
 * below 2^-256, eps with it, it is Inf, and y is right all the same. With eps = 0, a row whose spread is zero, or less
 * than the rounding of its mean, may have any rstd and y, NaN too.
 *
 * Source: Ba, Kiros and Hinton 2016, eq. 4.
 *
 * Shapes: matrices are r n, their rows contiguous and any distance apart; weight and bias are n; mean and rstd are r.
 * Types: x and y are f32, bf16 or f16. residual and residual_out are of the same type or f32; so are weight and bias,
 * on their own. mean and rstd are f32, philox is i64. Accumulation and statistics are f32; y is computed from the
 * unrounded h.
 * Parameters: eps >= 0; 0 means 1e-5, -0.0 zero. 0 <= dropout < 1. seed must be 0 where philox is given.
 * Aliasing: y may be x, residual_out may be residual.
 *
 * Error bound: min(n, 256) + n/1024 + 32 in units of 2^-24, of y's terms and of the mean deviation in units of the
 * standard deviation; the rounding of the mean besides; spec/norm/layer_norm.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite or outside its range; an output that overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_layer_norm(trine_queue *queue, const trine_layer_norm_args *args);

typedef struct trine_layer_norm_backward_args {
    size_t struct_size;            /* sizeof(trine_layer_norm_backward_args) */
    const trine_tensor *dy;        /* in r n */
    const trine_tensor *h;         /* in r n */
    const trine_tensor *weight;    /* in, optional n */
    const trine_tensor *mean;      /* in r */
    const trine_tensor *rstd;      /* in r */
    const trine_tensor *dresidual; /* in, optional r n */
    const trine_tensor *philox;    /* in, optional [2], i64: the forward's */
    const trine_tensor *dx;        /* out r n; may be dy */
    const trine_tensor *dh;        /* out, optional r n; may be dresidual */
    const trine_tensor *dweight;   /* out, optional n */
    const trine_tensor *dbias;     /* out, optional n */
    float weight_offset;
    float dropout;
    uint64_t seed;
    uint64_t offset;
} trine_layer_norm_backward_args;

/* Gradient of layer_norm, from the h it normalized (residual_out, or x) and the mean and rstd it saved.
 *
 *     xhat       = (h - mean) rstd
 *     g          = (weight + weight_offset) dy
 *     dh         = rstd (g - mean_j(g) - xhat mean_j(g xhat)) + dresidual
 *     dx         = dropout's mask and scale applied to dh
 *     dweight[j] = sum_i dy[i,j] xhat[i,j]
 *     dbias[j]   = sum_i dy[i,j]
 *
 * dh is the gradient at residual. Without weight its factor is 1. Of philox trine_dropout() tells; with it devices mask
 * dx afterwards, which takes a pass more.
 *
 * Source: the derivative of Ba, Kiros and Hinton 2016, eq. 4.
 *
 * Shapes: matrices are r n, their rows contiguous and any distance apart; weight, dweight and dbias are n; mean and
 * rstd are r.
 * Types: dy and dx are f32, bf16 or f16. h, dresidual and dh are of the same type or f32; so are weight, dweight and
 * dbias, on their own. mean and rstd are f32, philox is i64. Accumulation is f32; dx is computed from the unrounded dh.
 * Parameters: those of the forward. seed must be 0 where philox is given.
 * Aliasing: dx may be dy, dh may be dresidual.
 *
 * Error bound: of dx and dh min(n, 256) + n/1024 + 34 in units of 2^-24, of rstd (|g| + mean|g| + |xhat| mean|g xhat|)
 * + |dresidual|. Of dweight min(r, 256) + r/1024 + 19, of sum |dy xhat|; of dbias min(r, 256) + r/1024 + 16, of sum
 * |dy|; spec/norm/norm_backward.h.
 * Deterministic: the same bits for any number of threads. dweight and dbias are summed by blocks of rows that depend on
 * r alone, in the workspace.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite or outside its range; an output that overlaps another tensor otherwise than said),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_layer_norm_backward(trine_queue *queue, const trine_layer_norm_backward_args *args);

typedef struct trine_l1_norm_args {
    size_t struct_size;         /* sizeof(trine_l1_norm_args) */
    const trine_tensor *x;      /* in r n */
    const trine_tensor *weight; /* in, optional n */
    const trine_tensor *bias;   /* in, optional n */
    const trine_tensor *y;      /* out r n; may be x */
    const trine_tensor *mean;   /* out, optional r */
    const trine_tensor *rmad;   /* out, optional r */
    float eps;                  /* 0: 1e-5 */
} trine_l1_norm_args;

/* Normalization by the mean absolute deviation: layer normalization without squares and roots.
 *
 *     mean[i] = mean_j x[i,j]
 *     rmad[i] = 1 / (mean_j |x[i,j] - mean[i]| + eps)
 *     y[i,j]  = (x[i,j] - mean[i]) rmad[i] weight[j] + bias[j]
 *
 * Without weight its factor is 1; without bias 0 is added. Deviations are summed from a first mean, never the
 * difference of large sums: a mean far beyond the spread does no harm.
 *
 * Ranges: the sum of |x| of a row is within f32, or the row may be Inf or NaN. With eps = 0, a row whose spread is
 * zero, or less than the rounding of its mean, may have any rmad and y, NaN too.
 *
 * Source: arXiv 2411.10948 (ShiftQuant), on L1 normalization; Wu et al. 2018 have it for batches.
 *
 * Shapes: x and y are r n, their rows contiguous and any distance apart; weight and bias are n; mean and rmad are r.
 * Types: x and y are f32, bf16 or f16; weight and bias are of the same type or f32; mean and rmad are f32. Accumulation
 * is f32.
 * Parameters: eps >= 0; 0 means 1e-5, -0.0 zero.
 * Aliasing: y may be x.
 *
 * Error bound: min(n, 256) + n/1024 + 32 in units of 2^-24, of y's terms and of the mean deviation in units of itself;
 * the rounding of the mean besides; spec/norm/l1_norm.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; eps not finite or negative; an output that overlaps another tensor otherwise than said), TRINE_ERR_UNSUPPORTED
 * (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_l1_norm(trine_queue *queue, const trine_l1_norm_args *args);

typedef struct trine_l1_norm_backward_args {
    size_t struct_size;          /* sizeof(trine_l1_norm_backward_args) */
    const trine_tensor *dy;      /* in r n */
    const trine_tensor *x;       /* in r n */
    const trine_tensor *weight;  /* in, optional n */
    const trine_tensor *mean;    /* in r */
    const trine_tensor *rmad;    /* in r */
    const trine_tensor *dx;      /* out r n; may be dy */
    const trine_tensor *dweight; /* out, optional n */
    const trine_tensor *dbias;   /* out, optional n */
} trine_l1_norm_backward_args;

/* Gradient of l1_norm, from its x and the mean and rmad it saved.
 *
 *     xhat       = (x - mean) rmad
 *     g          = weight dy
 *     s          = the sign of x - mean, 0 for 0
 *     dx         = rmad (g - mean_j(g) - (s - mean_j(s)) mean_j(g xhat))
 *     dweight[j] = sum_i dy[i,j] xhat[i,j]
 *     dbias[j]   = sum_i dy[i,j]
 *
 * Without weight its factor is 1.
 *
 * Source: the derivative of trine_l1_norm().
 *
 * Shapes: matrices are r n, their rows contiguous and any distance apart; weight, dweight and dbias are n; mean and
 * rmad are r.
 * Types: dy, x and dx are f32, bf16 or f16, the same; weight, dweight and dbias are of that type or f32; mean and rmad
 * are f32. Accumulation is f32.
 * Ranges: differences and sums are within f32, or what has them may be Inf or NaN.
 * Aliasing: dx may be dy.
 *
 * Error bound: of dx min(n, 256) + n/1024 + 34 in units of 2^-24, of rmad (|g| + mean|g| + 2 mean|g xhat|). Of dweight
 * min(r, 256) + r/1024 + 19, of sum |dy xhat|; of dbias min(r, 256) + r/1024 + 16, of sum |dy|;
 * spec/norm/l1_norm_backward.c.
 * Deterministic: the same bits for any number of threads. dweight and dbias are summed by blocks of rows that depend on
 * r alone, in the workspace.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; an output that overlaps another tensor otherwise than said), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_l1_norm_backward(trine_queue *queue, const trine_l1_norm_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
