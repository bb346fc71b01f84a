/* SPDX-License-Identifier: Apache-2.0 */
/* Losses. */
#ifndef TRINE_LOSS_H
#define TRINE_LOSS_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_cross_entropy_args {
    size_t struct_size;               /* sizeof(trine_cross_entropy_args) */
    const trine_tensor *logits;       /* in r v */
    const trine_tensor *labels;       /* in r: i32 or i64 */
    const trine_tensor *loss;         /* out r: f32 */
    const trine_tensor *lse;          /* out, optional r: f32; what the gradient needs */
    float label_smoothing;            /* 0 <= label_smoothing < 1 */
    float z_loss;                     /* weight of lse^2, >= 0 */
    float logit_scale;                /* 0: 1 */
    int32_t ignore_index_set;         /* 1: ignore_index is read; 0: it is -100 */
    int64_t ignore_index;             /* rows with this label have loss 0 and gradient 0 */
    const trine_tensor *dloss;        /* in, optional r, or one element: f32; of the gradient; absent: 1 */
    const trine_tensor *dlogits;      /* out, optional r v: the gradient; may be logits */
    const trine_tensor *class_weight; /* in, optional v: f32; absent: all 1 */
} trine_cross_entropy_args;

/* Cross-entropy of logits, with class weights, label smoothing and z-loss, and its gradient in the same call.
 *
 * With z = logit_scale logits, y = labels[i], e = label_smoothing, w = class_weight and v classes:
 *
 *     lse[i]       = log sum_k exp(z[i,k])
 *     loss[i]      = (1-e) w[y] (lse[i] - z[i,y]) + (e/v) sum_k w[k] (lse[i] - z[i,k]) + z_loss lse[i]^2
 *     dlogits[i,k] = dloss[i] logit_scale (exp(z[i,k] - lse[i]) (m[i] + 2 z_loss lse[i])
 *                                          - (1-e) w[y] [k = y] - (e/v) w[k])
 *     m[i]         = (1-e) w[y] + (e/v) sum_k w[k]
 *
 * Without class_weight all w[k] are 1, and so is m[i].
 *
 * Where y is the ignored label, loss and dlogits are exactly 0. Means and sums over rows are the caller's, who usually
 * knows the loss's gradient beforehand: for a mean over the n rows that are not ignored, dloss is one element, 1/n;
 * with class weights it is one over the sum of w[y] of those rows, as in PyTorch. Then dlogits is what
 * trine_cross_entropy_backward() would write, at the cost of writing it: where a row fits on the SM, logits are read
 * once.
 *
 * lse is written for ignored rows too. A logit of -Inf is a class of probability 0: its own loss is +Inf, and with
 * smoothing every loss is, as the formula says. NaN anywhere in a row makes lse and dlogits NaN, and loss, unless
 * ignored. A term whose factor e or z_loss is 0 is left out rather than multiplied by 0; one whose class weight is 0 is
 * multiplied by it.
 *
 * Finite logits may be of any size. loss and dlogits follow from differences between the row's logits, which are taken
 * before anything else, and never from a rounded lse. Only what f32 cannot hold is Inf: an lse or a loss beyond it, and
 * dlogits where dloss logit_scale or 1 + 2 z_loss lse is.
 *
 * Source: Szegedy et al. 2016, section 7 (smoothing); Chowdhery et al. 2022, section 5 (z-loss).
 *
 * Shapes: logits and dlogits are r v, the last dimension contiguous, rows with any stride. labels, loss and lse are r,
 * contiguous; dloss is r, contiguous, or 1. v may be anything.
 * Types: logits are f32, bf16 or f16, read exactly and accumulated in f32; dlogits has their type, and of f32 it may
 * also be bf16 or f16. labels are i32 or i64; loss, lse, dloss and class_weight f32. Outputs are rounded once.
 * Parameters: labels are in [0, v) or the ignored one, which is -100, or ignore_index if ignore_index_set. logit_scale
 * is at most 2^126 in size; 0 means 1, -0.0 zero. dloss is not read where dlogits is absent, nor for ignored rows.
 * class_weight may be anything, 0 and negative numbers included; without smoothing only those of labels count.
 * Aliasing: dlogits may be logits, the very same view, which saves a second matrix of that size. No output may overlap
 * another tensor otherwise.
 *
 * Error bound: in units of 2^-24, with d the distance of z from the row's largest z and p a class's probability. Of lse
 * and loss v + 32 of 1 + 2 z_loss (|lse| + 1), of the mean of e d, and 16 e; 3 for each unit of the mean of d under p,
 * and 144. Of dlogits trine_cross_entropy_backward()'s, and p times what log sum exp is off by. None grows with the
 * size of logits that are all the same, but for the one rounding of lse. With class weights all of this is of their
 * absolute values, and v + 32 of 2 (e/v) sum_k |w[k]| (|d| + 16) and of (e/v) sum_k |w[k]| (log sum exp(d) + 16) take
 * the place of the mean of e d and 16 e. The derivation is in spec/loss/cross_entropy.h; trine_error_bound() gives the
 * coefficients.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a label out of range, named with its row; label_smoothing outside [0, 1), z_loss below 0, logit_scale beyond
 * 2^126, a parameter not finite; an output overlaps another tensor, or dlogits logits otherwise than as the same view),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_cross_entropy(trine_queue *queue, const trine_cross_entropy_args *args);

typedef struct trine_cross_entropy_backward_args {
    size_t struct_size;               /* sizeof(trine_cross_entropy_backward_args) */
    const trine_tensor *logits;       /* in r v */
    const trine_tensor *labels;       /* in r: i32 or i64 */
    const trine_tensor *lse;          /* in r: f32, the forward's */
    const trine_tensor *dloss;        /* in r: f32 */
    const trine_tensor *dlogits;      /* out r v; may be logits */
    float label_smoothing;            /* 0 <= label_smoothing < 1 */
    float z_loss;                     /* weight of lse^2, >= 0 */
    float logit_scale;                /* 0: 1 */
    int32_t ignore_index_set;         /* 1: ignore_index is read; 0: it is -100 */
    int64_t ignore_index;             /* rows with this label have loss 0 and gradient 0 */
    const trine_tensor *class_weight; /* in, optional v: f32; absent: all 1 */
} trine_cross_entropy_backward_args;

/* Gradient of cross_entropy, from its lse.
 *
 * With z = logit_scale logits, p[i,k] = exp(z[i,k] - lse[i]), y = labels[i], e = label_smoothing, w = class_weight and
 * v classes:
 *
 *     dlogits[i,k] = dloss[i] logit_scale (p[i,k] (m[i] + 2 z_loss lse[i]) - (1-e) w[y] [k = y] - (e/v) w[k])
 *     m[i]         = (1-e) w[y] + (e/v) sum_k w[k]
 *
 * Without class_weight all w[k] are 1, and so is m[i]. Where y is the ignored label, dlogits is exactly 0, whatever the
 * row, lse and dloss hold. The sum of dlogits over k is dloss[i] logit_scale 2 z_loss lse[i], whatever the smoothing
 * and the weights.
 *
 * lse in f32 is fine enough below 1024, where half a unit in its last place moves p by 2^-15 of itself. Where |lse| is
 * 1024 or more, or infinite, it is not used: the row's own log sum exp is computed anew, as trine_cross_entropy() does.
 * That reads the row once more, and needs all of its classes. So probabilities sum to 1, and finite logits may be of
 * any size. But a caller whose row is one part of several, with the lse of all, has to keep that below 1024.
 *
 * Source: the derivative of trine_cross_entropy()'s formula.
 *
 * Shapes: as in trine_cross_entropy(): logits and dlogits r v, labels, lse and dloss r, contiguous.
 * Types: dlogits has the type of logits, and of f32 it may also be bf16 or f16; dloss, lse and class_weight are f32.
 * Arithmetic is f32, with one rounding at the end.
 * Parameters: labels, class_weight and parameters as in trine_cross_entropy(), which must have had the same.
 * Aliasing: dlogits may be logits.
 *
 * Error bound: 20*2^-24 of |dloss logit_scale| (p (1 + 2 z_loss |lse|) + a third of the target's probability), and
 * 3*2^-24 for each unit of |z - lse|, and 48, in p; spec/loss/cross_entropy.h. With class weights, m of their absolute
 * values is in the place of 1, and a half of the target's in that of a third. A p above 2^127 may overflow.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a label out of range, named with its row; label_smoothing outside [0, 1), z_loss below 0, logit_scale beyond
 * 2^126, a parameter not finite; dlogits overlaps another tensor than logits, or logits otherwise than as the same
 * view), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_cross_entropy_backward(trine_queue *queue, const trine_cross_entropy_backward_args *args);

typedef struct trine_linear_cross_entropy_args {
    size_t struct_size;               /* sizeof(trine_linear_cross_entropy_args) */
    const trine_tensor *x;            /* in t k: the tokens */
    const trine_tensor *weight;       /* in v k: a row for each class */
    const trine_tensor *labels;       /* in t: i32 or i64 */
    const trine_tensor *bias;         /* in, optional v */
    const trine_tensor *loss;         /* out t: f32 */
    const trine_tensor *lse;          /* out, optional t: f32; what trine_linear_cross_entropy_backward() needs */
    const trine_tensor *dloss;        /* in, optional t, or one element: f32; of the gradients; absent: 1 */
    const trine_tensor *dx;           /* out, optional t k */
    const trine_tensor *dweight;      /* out, optional v k: of weight's type, or f32 */
    const trine_tensor *dbias;        /* out, optional v: of bias's type */
    float label_smoothing;            /* 0 <= label_smoothing < 1 */
    float z_loss;                     /* weight of lse^2, >= 0 */
    float logit_scale;                /* 0: 1 */
    int32_t ignore_index_set;         /* 1: ignore_index is read; 0: it is -100 */
    int64_t ignore_index;             /* tokens with this label have loss 0 and gradient 0 */
    const trine_tensor *class_weight; /* in, optional v: f32; absent: all 1 */
} trine_linear_cross_entropy_args;

/* Cross-entropy of a linear layer's outputs, a language model's head and its loss, with the gradients in the same call.
 * The logits, t v of them, are never in memory as a whole.
 *
 * With z = logit_scale (x weight' + bias), y = labels[i], e = label_smoothing, w = class_weight or 1:
 *
 *     lse[i]       = log sum_j exp(z[i,j])
 *     loss[i]      = (1-e) w[y] (lse[i] - z[i,y]) + (e/v) sum_j w[j] (lse[i] - z[i,j]) + z_loss lse[i]^2
 *     g[i,j]       = dloss[i] logit_scale (exp(z[i,j] - lse[i]) (m[i] + 2 z_loss lse[i])
 *                                          - (1-e) w[y] [j = y] - (e/v) w[j])
 *     m[i]         = (1-e) w[y] + (e/v) sum_j w[j]
 *     dx[i,p]      = sum_j g[i,j] weight[j,p]
 *     dweight[j,p] = sum_i g[i,j] x[i,p]
 *     dbias[j]     = sum_i g[i,j]
 *
 * Where y is the ignored label, loss and g are exactly 0. Means and sums over tokens are the caller's, as in
 * trine_cross_entropy(): for a mean over the n tokens that are not ignored, dloss is one element, 1/n; with class
 * weights, one over the sum of w[y] of those tokens. A training step
 * whose gradients are asked for here takes three products; one that calls trine_linear_cross_entropy_backward() later
 * takes four.
 *
 * Tokens are taken in chunks, whose size follows from t, k and v alone. A chunk's logits are in the workspace, in f32
 * whatever the type of x, and take about half of what x and weight would in f32; never fewer than 256 tokens are one.
 * Where x is bf16 or f16, g is rounded to its type for the products, and so is there once more; dweight of such a type
 * is added up in f32 in the workspace where there are several chunks, and rounded once. In f16 what g has below 2^-24
 * is lost: scale dloss, as training in f16 does.
 *
 * Source: Hsu et al. 2024 (Liger Kernel), section 3.2 (chunks, gradients with the loss); Szegedy et al. 2016, section 7
 * (smoothing); Chowdhery et al. 2022, section 5 (z-loss).
 *
 * Shapes: x and dx are t k, weight and dweight v k, the last dimension contiguous, rows with any stride. bias and dbias
 * are v; labels, loss and lse t, contiguous; dloss is t, contiguous, or 1. t and k may be 0.
 * Types: x and weight are of one type, f32, bf16 or f16, which dx has too. bias and dbias have it or are f32; so does
 * dweight, whether weight is f32 or not. labels are i32 or i64; loss, lse, dloss and class_weight f32. Logits, losses
 * and sums are in f32.
 * Parameters: labels are in [0, v) or the ignored one, which is -100, or ignore_index if ignore_index_set. logit_scale
 * is at most 2^126 in size; 0 means 1, -0.0 zero. dloss is not read where no gradient is asked for. class_weight as in
 * trine_cross_entropy().
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of a logit, o = (k + 4) 2^-24 (sum_p |x weight| + |bias|), 2.25 times that for bf16 and f16, times
 * logit_scale. lse and loss are off by what trine_cross_entropy()'s are, and by the mean of o under p; loss by o[y] and
 * the mean of e o besides. g is off by trine_cross_entropy()'s bound and p times o and what lse is off by, and by a
 * rounding to the type of x. dx and dweight are matmul's products of that g; dbias a sum of it before that rounding.
 * The derivation is in spec/loss/linear_cross_entropy.h; trine_error_bound() gives the coefficients.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a label out of range, named with its token; label_smoothing outside [0, 1), z_loss below 0, logit_scale beyond
 * 2^126, a parameter not finite; an output overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_linear_cross_entropy(trine_queue *queue, const trine_linear_cross_entropy_args *args);

typedef struct trine_linear_cross_entropy_backward_args {
    size_t struct_size;               /* sizeof(trine_linear_cross_entropy_backward_args) */
    const trine_tensor *x;            /* in t k */
    const trine_tensor *weight;       /* in v k */
    const trine_tensor *labels;       /* in t: i32 or i64 */
    const trine_tensor *bias;         /* in, optional v */
    const trine_tensor *lse;          /* in t: f32, the forward's */
    const trine_tensor *dloss;        /* in t: f32 */
    const trine_tensor *dx;           /* out, optional t k */
    const trine_tensor *dweight;      /* out, optional v k: of weight's type, or f32 */
    const trine_tensor *dbias;        /* out, optional v: of bias's type */
    float label_smoothing;            /* 0 <= label_smoothing < 1 */
    float z_loss;                     /* weight of lse^2, >= 0 */
    float logit_scale;                /* 0: 1 */
    int32_t ignore_index_set;         /* 1: ignore_index is read; 0: it is -100 */
    int64_t ignore_index;             /* tokens with this label have loss 0 and gradient 0 */
    const trine_tensor *class_weight; /* in, optional v: f32; absent: all 1 */
} trine_linear_cross_entropy_backward_args;

/* Gradient of linear_cross_entropy, from its lse. The logits are computed once more.
 *
 * With z = logit_scale (x weight' + bias), y = labels[i], e = label_smoothing and w = class_weight or 1:
 *
 *     g[i,j]       = dloss[i] logit_scale (exp(z[i,j] - lse[i]) (m[i] + 2 z_loss lse[i])
 *                                          - (1-e) w[y] [j = y] - (e/v) w[j])
 *     m[i]         = (1-e) w[y] + (e/v) sum_j w[j]
 *     dx[i,p]      = sum_j g[i,j] weight[j,p]
 *     dweight[j,p] = sum_i g[i,j] x[i,p]
 *     dbias[j]     = sum_i g[i,j]
 *
 * Where y is the ignored label, g is exactly 0. At least one of the gradients is asked for. Where |lse[i]| is
 * 1024 or more it is not used, as in trine_cross_entropy_backward().
 *
 * Source: the derivative of trine_linear_cross_entropy()'s formula.
 *
 * Shapes: as in trine_linear_cross_entropy(); dloss is t, contiguous.
 * Types: as in trine_linear_cross_entropy().
 * Parameters: labels, class_weight and parameters as in trine_linear_cross_entropy(), which must have had the same.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of trine_linear_cross_entropy(), with an lse that is exact.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL, or all gradients are; rank, sizes, strides or element types
 * that the above does not admit; a label out of range, named with its token; label_smoothing outside [0, 1), z_loss
 * below 0, logit_scale beyond 2^126, a parameter not finite; an output overlaps another tensor), TRINE_ERR_UNSUPPORTED
 * (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_linear_cross_entropy_backward(trine_queue *queue,
                                                           const trine_linear_cross_entropy_backward_args *args);

typedef struct trine_kl_div_args {
    size_t struct_size;           /* sizeof(trine_kl_div_args) */
    const trine_tensor *input;    /* in r v: log-probabilities of the student, or logits */
    const trine_tensor *target;   /* in r v: those of the teacher */
    const trine_tensor *weight;   /* in, optional r: f32; absent: all 1 */
    const trine_tensor *loss;     /* out r: f32 */
    int32_t logits;               /* 1: input and target are logits */
    int32_t target_probabilities; /* 1: target is probabilities */
    float logit_scale;            /* of logits, 2^-20 .. 2^20: one over the temperature; 0: 1 */
} trine_kl_div_args;

/* Kullback-Leibler divergence of rows, target from input, as distillation has it.
 *
 *     loss[i] = weight[i] sum_k p[i,k] (log p[i,k] - log q[i,k])
 *
 * log q is input and log p target; of logits both are log_softmax(logit_scale x). With target_probabilities target is p
 * itself, whatever input is, and need not add up to 1.
 *
 * A class with p = 0 adds 0, whatever q is; one with q = 0 else makes the loss Inf. A row of weight 0 is left out: its
 * loss is exactly 0, whatever it holds. A NaN or an infinite logit without a class to spare, +Inf among others, makes a
 * row's loss NaN, and so does a negative probability. Means and sums over rows are the caller's: "batchmean" is the sum
 * over r.
 *
 * Source: Kullback and Leibler 1951; Hinton et al. 2015, section 2 (distillation), as torch.nn.functional.kl_div and
 * Liger-Kernel have it, row by row.
 *
 * Shapes: input and target are r v, the last dimension contiguous, rows with any stride. weight and loss are r,
 * contiguous. v may be anything.
 * Types: input and target are f32, bf16 or f16, the same, read exactly; weight and loss f32. Computed in f32.
 * Parameters: logit_scale is read for logits alone.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: v + 32 roundings of f32 of sum_k |p (log p - log q)|, and what the errors of p, of log p and of log q
 * move: spec/loss/divergence.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; logit_scale out of range; an output overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_kl_div(trine_queue *queue, const trine_kl_div_args *args);

typedef struct trine_kl_div_backward_args {
    size_t struct_size;           /* sizeof(trine_kl_div_backward_args) */
    const trine_tensor *input;    /* in r v */
    const trine_tensor *target;   /* in r v */
    const trine_tensor *weight;   /* in, optional r: f32; absent: all 1 */
    const trine_tensor *dloss;    /* in r: f32 */
    const trine_tensor *dinput;   /* out r v; may be input or target */
    int32_t logits;               /* 1: input and target are logits */
    int32_t target_probabilities; /* 1: target is probabilities */
    float logit_scale;            /* of logits, 2^-20 .. 2^20: one over the temperature; 0: 1 */
} trine_kl_div_backward_args;

/* Gradient of kl_div with respect to input; target is a constant.
 *
 *     dinput[i,k] = dloss[i] weight[i] (-p[i,k])
 *     of logits:    dloss[i] weight[i] logit_scale (q[i,k] sum_j p[i,j] - p[i,k])
 *
 * The sum is 1 unless target_probabilities says otherwise. Where weight is 0, dinput is exactly 0.
 *
 * Source: the derivative of trine_kl_div()'s formula.
 *
 * Shapes: as in trine_kl_div(): input, target and dinput r v, weight and dloss r, contiguous.
 * Types: input, target and dinput are f32, bf16 or f16, the same; weight and dloss f32. Computed in f32, rounded once.
 * Parameters: as in trine_kl_div(), which must have had the same.
 * Aliasing: dinput may be input or target, the very same view.
 *
 * Error bound: 8 roundings of f32 of |dloss weight logit_scale| (p + q), and what the errors of p and q move:
 * spec/loss/divergence.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; logit_scale out of range; dinput overlaps another tensor otherwise than as the same view),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_kl_div_backward(trine_queue *queue, const trine_kl_div_backward_args *args);

typedef struct trine_jsd_args {
    size_t struct_size;         /* sizeof(trine_jsd_args) */
    const trine_tensor *input;  /* in r v: log-probabilities of the student, or logits */
    const trine_tensor *target; /* in r v: those of the teacher */
    const trine_tensor *weight; /* in, optional r: f32; absent: all 1 */
    const trine_tensor *loss;   /* out r: f32 */
    int32_t logits;             /* 1: input and target are logits */
    float beta;                 /* 0 <= beta <= 1: what target counts in the mixture */
    float logit_scale;          /* of logits, 2^-20 .. 2^20: one over the temperature; 0: 1 */
} trine_jsd_args;

/* Generalised Jensen-Shannon divergence of rows.
 *
 *     m[i,k]  = beta p[i,k] + (1 - beta) q[i,k]
 *     loss[i] = weight[i] sum_k (beta p (log p - log m) + (1 - beta) q (log q - log m))
 *     beta 0:   weight[i] sum_k p (log p - log q),  the forward Kullback-Leibler divergence
 *     beta 1:   weight[i] sum_k q (log q - log p),  the reverse one
 *
 * log q is input and log p target; of logits both are log_softmax(logit_scale x). beta = 1/2 is the divergence of Lin.
 * The two limits are those of Liger-Kernel and of generalised knowledge distillation, not of the first formula, which
 * is 0 there.
 *
 * What is multiplied by a probability of 0 is 0. A row of weight 0 is left out: its loss is exactly 0, whatever it
 * holds. NaN or +Inf among a row's logits makes its loss NaN. Means and sums over rows are the caller's.
 *
 * Source: Lin 1991; Agarwal et al. 2024 (GKD), section 3, with p of the teacher; Liger-Kernel's JSD, row by row.
 *
 * Shapes: input and target are r v, the last dimension contiguous, rows with any stride. weight and loss are r,
 * contiguous. v may be anything.
 * Types: input and target are f32, bf16 or f16, the same, read exactly; weight and loss f32. Computed in f32.
 * Parameters: beta left zero is 0. logit_scale is read for logits alone.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: v + 32 roundings of f32 of the terms' absolute values, and what the errors of p, q and m and of their
 * logarithms move: spec/loss/divergence.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; beta or logit_scale out of range; an output overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no
 * kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_jsd(trine_queue *queue, const trine_jsd_args *args);

typedef struct trine_jsd_backward_args {
    size_t struct_size;         /* sizeof(trine_jsd_backward_args) */
    const trine_tensor *input;  /* in r v */
    const trine_tensor *target; /* in r v */
    const trine_tensor *weight; /* in, optional r: f32; absent: all 1 */
    const trine_tensor *dloss;  /* in r: f32 */
    const trine_tensor *dinput; /* out r v; may be input or target */
    int32_t logits;             /* 1: input and target are logits */
    float beta;                 /* 0 <= beta <= 1 */
    float logit_scale;          /* of logits, 2^-20 .. 2^20: one over the temperature; 0: 1 */
} trine_jsd_backward_args;

/* Gradient of jsd with respect to input; target is a constant.
 *
 * With c = 1 - beta and rho = log q - log m; with beta 1, c = 1 and rho = log q - log p:
 *
 *     dinput[i,k] = dloss[i] weight[i] c q[i,k] rho[i,k],  beta 1: q (rho + 1),  beta 0: -p
 *     of logits:    dloss[i] weight[i] logit_scale c q[i,k] (rho[i,k] - sum_j q[i,j] rho[i,j]),  beta 0: q - p
 *
 * Where weight is 0, dinput is exactly 0. Where q is 0 and beta is not, so is dinput, unless the sum is infinite: then
 * dinput is, or NaN.
 *
 * Source: the derivative of trine_jsd()'s formula.
 *
 * Shapes: as in trine_jsd(): input, target and dinput r v, weight and dloss r, contiguous.
 * Types: input, target and dinput are f32, bf16 or f16, the same; weight and dloss f32. Computed in f32, rounded once.
 * Parameters: as in trine_jsd(), which must have had the same.
 * Aliasing: dinput may be input or target, the very same view.
 *
 * Error bound: 8 roundings of f32 of the terms' absolute values, and what the errors of p, q and m, of their logarithms
 * and of the sum move: spec/loss/divergence.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; beta or logit_scale out of range; dinput overlaps another tensor otherwise than as the same view),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_jsd_backward(trine_queue *queue, const trine_jsd_backward_args *args);

typedef struct trine_policy_loss_args {
    size_t struct_size;             /* sizeof(trine_policy_loss_args) */
    const trine_tensor *logp;       /* in [b] t: f32; log-probabilities of the sampled tokens */
    const trine_tensor *old_logp;   /* in, optional [b] t: f32; of the policy that sampled them; absent: logp */
    const trine_tensor *ref_logp;   /* in, optional [b] t: f32; of the reference policy */
    const trine_tensor *advantages; /* in, optional [b] t: f32; of tokens */
    const trine_tensor *returns;    /* in, optional s: f32; advantages of whole sequences, which are added to those */
    const trine_tensor *mask;       /* in, optional [b] t: u8; 0: the token does not count */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then b must be 1 */
    const trine_tensor *loss;       /* out s: f32 */
    float clip_low;                 /* the ratio is clipped below 1 - clip_low, >= 0 */
    float clip_high;                /* and above 1 + clip_high, >= 0 */
    float kl_weight;                /* of the divergence from the reference, >= 0 */
    int32_t sequence_ratio;         /* 1: one ratio for a sequence, its tokens' geometric mean (GSPO) */
    int32_t mean;                   /* 1: the mean over a sequence's tokens; 0: their sum */
} trine_policy_loss_args;

/* The clipped policy loss of the GRPO family, by sequences, from log-probabilities of tokens.
 *
 * With A = advantages[t] + returns[i], those that are given, n the number of tokens of sequence i that count, and sums
 * over these:
 *
 *     x[t]    = logp[t] - old_logp[t],  with sequence_ratio sum_u x[u] / n
 *     ratio   = exp(x[t])
 *     l[t]    = -min(ratio A, min(max(ratio, 1 - clip_low), 1 + clip_high) A) + kl_weight (exp(d) - d - 1)
 *     d       = ref_logp[t] - logp[t]
 *     loss[i] = sum_t l[t],  with mean sum_t l[t] / max(n, 1)
 *
 * The variants differ by parameters and by what the caller makes of loss. With s sequences, GRPO is mean, and loss
 * averaged over sequences; GSPO is that with sequence_ratio; DAPO and BNPO are sums, added up and divided by the number
 * of all tokens that count, of the whole batch or of this part; Dr. GRPO divides those by s times the longest length.
 * So the gradient's dloss is 1/s, one over the number of tokens, or 1/(s length). PPO has advantages of tokens. Without
 * old_logp the ratio is 1, and its gradient that of logp, as in a first step on fresh samples.
 *
 * logp follows from logits by trine_cross_entropy() or trine_linear_cross_entropy(), whose loss is -logp and whose
 * dloss is the gradient that trine_policy_loss_backward() writes, negated.
 *
 * Source: Schulman et al. 2017, equation 7 (PPO); Shao et al. 2024, equation 3 (GRPO), with the estimator of Schulman
 * 2020 for the divergence; Yu et al. 2025 (DAPO); Liu et al. 2025 (Dr. GRPO); Zheng et al. 2025, equation 5 (GSPO).
 *
 * Packed sequences: with cu_seqlens, b is 1. Sequence i has the tokens cu_seqlens[i] .. cu_seqlens[i+1]-1, and element
 * i of returns and of loss; tokens behind the last sequence do not count.
 * Shapes: logp, old_logp, ref_logp, advantages and mask are [b] t, the last dimension contiguous, rows with any stride;
 * returns and loss are s, nseq with cu_seqlens, else b, which may be left out.
 * Types: all are f32 but mask, u8, and cu_seqlens, i32. Computed in f32.
 * Parameters: one of advantages and returns must be given. kl_weight is read where ref_logp is given. What a token that
 * does not count holds is not looked at. The loss of a sequence without tokens is 0.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: two more roundings of f32 than there are tokens, of the terms' absolute values, and what the errors of
 * the exponents move: spec/loss/policy_loss.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_policy_loss(trine_queue *queue, const trine_policy_loss_args *args);

typedef struct trine_policy_loss_backward_args {
    size_t struct_size;             /* sizeof(trine_policy_loss_backward_args) */
    const trine_tensor *logp;       /* in [b] t: f32 */
    const trine_tensor *old_logp;   /* in, optional [b] t: f32; absent: logp */
    const trine_tensor *ref_logp;   /* in, optional [b] t: f32 */
    const trine_tensor *advantages; /* in, optional [b] t: f32 */
    const trine_tensor *returns;    /* in, optional s: f32 */
    const trine_tensor *mask;       /* in, optional [b] t: u8 */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1 */
    const trine_tensor *dloss;      /* in s: f32 */
    const trine_tensor *dlogp;      /* out [b] t: f32 */
    float clip_low;                 /* the forward's, as all that follow */
    float clip_high;
    float kl_weight;
    int32_t sequence_ratio;
    int32_t mean;
} trine_policy_loss_backward_args;

/* Gradient of policy_loss with respect to logp; all else is a constant.
 *
 * With g = dloss[i], with mean dloss[i] / max(n, 1), and the words of trine_policy_loss():
 *
 *     c[t]     = 0 if A > 0 and ratio > 1 + clip_high, or A < 0 and ratio < 1 - clip_low, else -ratio A
 *     dlogp[t] = g (c[t] + kl_weight (1 - exp(d)))
 *     with sequence_ratio: g (sum_u c[u] / n + kl_weight (1 - exp(d)))
 *
 * Tokens that do not count, and those behind the last of packed sequences, have exactly 0.
 *
 * Source: the derivative of trine_policy_loss()'s formula.
 *
 * Shapes: as in trine_policy_loss(); dloss is s, dlogp [b] t.
 * Types: all are f32 but mask, u8, and cu_seqlens, i32. Computed in f32.
 * Parameters: those of trine_policy_loss(), which must have had the same.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: what roundings of f32 make of each step of the formula, with sequence_ratio one for each token of its
 * sums too; spec/near.h and spec/loss/policy_loss.h. A ratio that f32 may take for one on the other
 * side of a clip may have either gradient.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_policy_loss_backward(trine_queue *queue, const trine_policy_loss_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
