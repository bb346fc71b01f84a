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
    const trine_tensor *philox;      /* in, optional [2], i64: in place of seed, and added to stream */
    float lr;                        /* learning rate, >= 0; 0 where lr_tensor is given */
    float beta1;                     /* 0 <= beta1 < 1; 0: 0.9 */
    float beta2;                     /* 0 <= beta2 < 1; 0: 0.999 */
    float eps;                       /* >= 0; 0: 1e-8 */
    float weight_decay;              /* >= 0 */
    int64_t step;                    /* number of this step, from 1; 0 where step_tensor is given */
    uint64_t seed;                   /* of chance: key of the generator; 0 where philox is given */
    uint64_t stream;                 /* high half of its counter: another for every call */
    int32_t stochastic;              /* 1: a param of bf16 goes up or down by chance */
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
 * lr_tensor, step_tensor, grad_scale, found_inf and philox are read when the op runs: a graph that was recorded takes
 * what is there each time it is launched. Where found_inf is not 0, NaN included, param, m and v stay as they are,
 * whatever grad has, and copy gets the unchanged param; step_tensor is the caller's to raise or not. A step_tensor
 * below 1 is an error on the CPU, and on devices makes param and copy NaN. lr_tensor is not looked at before it is
 * used.
 *
 * With stochastic set a param of bf16 goes up or down by chance, so that steps of less than half of its last place
 * count on average: to the number beneath or, in size, to the next where r 2^-16 is below what lies beyond, in units of
 * that place. r are the upper 16 bits of the word of Philox4x32-10 that trine_dropout() would hold against its
 * threshold, of element i. Tensors and steps are to have streams of their own. One of f32 or f16 goes to the nearest in
 * any case.
 *
 * Source: Loshchilov and Hutter 2019, algorithm 2.
 *
 * Shapes: all tensors are n, contiguous, but the last five, which are 1, and 2 of philox. grad_scale may be the
 * coefficient of trine_global_norm_clip(), or the reciprocal of a loss scale.
 * Types: param and grad are f32, bf16 or f16; m and v both f32 or both bf16. Arithmetic is f32, with one rounding for
 * each output. step_tensor and philox are i64; grad_scale, lr_tensor and found_inf are f32.
 * Parameters: for a true zero in beta1, beta2 or eps pass -0.0.
 * Aliasing: no tensor may overlap another.
 *
 * Error bound, in units of 2^-24: m 4 of b1|m| + (1-b1)|g|; v 6 of b2 v + (1-b2)g^2; param and copy 24 of the length of
 * the step, with the error of v on top, and 4 of |param|(1 + lr weight_decay); spec/optimizer/adamw.c. g^2 beyond f32
 * may overflow. A param rounded by chance is what chance makes of a number within that.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; step below 1; a parameter out of range or not finite, or set beside the tensor that stands for it; overlap),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_adamw(trine_queue *queue, const trine_adamw_args *args);

typedef struct trine_lion_args {
    size_t struct_size;             /* sizeof(trine_lion_args) */
    const trine_tensor *param;      /* in and out n */
    const trine_tensor *grad;       /* in n */
    const trine_tensor *m;          /* in and out n */
    const trine_tensor *copy;       /* out, optional n: param as bf16 or f16 */
    const trine_tensor *grad_scale; /* in, optional [1], f32: multiplies grad */
    const trine_tensor *lr_tensor;  /* in, optional [1], f32: in place of lr */
    const trine_tensor *found_inf;  /* in, optional [1], f32: if it is not 0, the step is skipped */
    const trine_tensor *philox;     /* in, optional [2], i64: in place of seed, and added to stream */
    float lr;                       /* learning rate, >= 0; 0 where lr_tensor is given */
    float beta1;                    /* 0 <= beta1 < 1; 0: 0.9 */
    float beta2;                    /* 0 <= beta2 < 1; 0: 0.99 */
    float weight_decay;             /* >= 0 */
    uint64_t seed;                  /* of chance: key of the generator; 0 where philox is given */
    uint64_t stream;                /* high half of its counter: another for every call */
    int32_t stochastic;             /* 1: a param of bf16 goes up or down by chance */
} trine_lion_args;

/* One step of Lion, in place. All parameters of a model are one list: trine_run_list().
 *
 * With b1 = beta1, b2 = beta2:
 *
 *     g     = grad_scale grad
 *     c     = b1 m + (1-b1) g
 *     param = param - lr weight_decay param - lr sign(c)
 *     m     = b2 m + (1-b2) g
 *     copy  = param
 *
 * sign(0) is 0, and sign(NaN) NaN. c is what f32 makes of it: g, both products, of which 1-b1 is rounded once, and
 * their sum are rounded each, so that every device finds the same sign, also where c is next to 0. param enters copy
 * before it is rounded.
 *
 * lr_tensor, grad_scale, found_inf and philox are read when the op runs: a graph that was recorded takes what is there
 * each time it is launched. Where found_inf is not 0, NaN included, param and m stay as they are, whatever grad has,
 * and copy gets the unchanged param. lr_tensor is not looked at before it is used.
 *
 * With stochastic set a param of bf16 goes up or down by chance, so that steps of less than half of its last place
 * count on average: to the number beneath or, in size, to the next where r 2^-16 is below what lies beyond, in units of
 * that place. r are the upper 16 bits of the word of Philox4x32-10 that trine_dropout() would hold against its
 * threshold, of element i. Tensors and steps are to have streams of their own. One of f32 or f16 goes to the nearest in
 * any case.
 *
 * Source: Chen et al. 2023, "Symbolic discovery of optimization algorithms", algorithm 2.
 *
 * Shapes: all tensors are n, contiguous, but the last four, which are 1, and 2 of philox. grad_scale may be the
 * coefficient of trine_global_norm_clip(), or the reciprocal of a loss scale.
 * Types: param and grad are f32, bf16 or f16; m f32 or bf16. Arithmetic is f32, with one rounding for each output.
 * grad_scale, lr_tensor and found_inf are f32, philox i64.
 * Parameters: for a true zero in beta1 or beta2 pass -0.0.
 * Aliasing: no tensor may overlap another.
 *
 * Error bound, in units of 2^-24: m 4 of b2|m| + (1-b2)|g|; param and copy 4 of |param|(1 + lr weight_decay) + lr;
 * spec/optimizer/lion.c. A param rounded by chance is what chance makes of a number within that.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range or not finite, or set beside the tensor that stands for it; overlap),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_lion(trine_queue *queue, const trine_lion_args *args);

typedef struct trine_adafactor_args {
    size_t struct_size;              /* sizeof(trine_adafactor_args) */
    const trine_tensor *param;       /* in and out [r] c */
    const trine_tensor *grad;        /* in [r] c */
    const trine_tensor *col_var;     /* in and out c, f32 */
    const trine_tensor *row_var;     /* in and out, optional r, f32: of a matrix; a vector has none */
    const trine_tensor *copy;        /* out, optional [r] c: param as bf16 or f16 */
    const trine_tensor *grad_scale;  /* in, optional [1], f32: multiplies grad */
    const trine_tensor *lr_tensor;   /* in, optional [1], f32: in place of lr */
    const trine_tensor *step_tensor; /* in, optional [1], i64: in place of step */
    const trine_tensor *found_inf;   /* in, optional [1], f32: if it is not 0, the step is skipped */
    const trine_tensor *philox;      /* in, optional [2], i64: in place of seed, and added to stream */
    float lr;                        /* largest relative step, >= 0; 0 where lr_tensor is given */
    float beta2_decay;               /* <= 0; 0: -0.8 */
    float eps1;                      /* > 0; left 0: the rounding unit of param's type, 2^-23, 2^-7 or 2^-10 */
    float eps2;                      /* >= 0; 0: 1e-3 */
    float clip;                      /* > 0; 0: 1: largest root mean square of an update */
    float weight_decay;              /* >= 0 */
    int64_t step;                    /* number of this step, from 1; 0 where step_tensor is given */
    uint64_t seed;                   /* of chance: key of the generator; 0 where philox is given */
    uint64_t stream;                 /* high half of its counter: another for every call */
    int32_t stochastic;              /* 1: a param of bf16 goes up or down by chance */
} trine_adafactor_args;

/* One step of Adafactor, in place, as torch.optim.Adafactor makes it. All parameters of a model are one list:
 * trine_run_list().
 *
 * With t = step and w = t^beta2_decay, means over rows i, columns j or both, and rms(x) = sqrt(mean x^2):
 *
 *     g       = grad_scale grad
 *     rate    = min(lr, 1/sqrt(t)) max(eps2, rms(param))
 *     row_var = row_var + w (mean_j g^2 - row_var)
 *     col_var = col_var + w (mean_i g^2 - col_var)
 *     u       = g / sqrt(max(row_var[i] col_var[j] / max(mean_i row_var, eps1), eps1^2))
 *     param   = param - lr weight_decay param - rate / max(1, rms(u)/clip) u
 *     copy    = param
 *
 * A vector has no row_var and r = 1: col_var is then its second moment, and u = g / sqrt(max(col_var, eps1^2)). The
 * variances enter u before they are rounded, rms(param) is that of param before this step, and param enters copy before
 * it is rounded. As with PyTorch, an rms that is NaN counts as if it were small. The mean of nothing is 0. Variances
 * should not be negative: their root is NaN.
 *
 * lr_tensor, step_tensor, grad_scale, found_inf and philox are read when the op runs: a graph that was recorded takes
 * what is there each time it is launched. Where found_inf is not 0, NaN included, param, row_var and col_var stay as
 * they are, whatever grad has, and copy gets the unchanged param; step_tensor is the caller's to raise or not. A
 * step_tensor below 1 is an error on the CPU, and on devices makes param, copy and the variances NaN. lr_tensor is not
 * looked at before it is used.
 *
 * With stochastic set a param of bf16 goes up or down by chance, so that steps of less than half of its last place
 * count on average: to the number beneath or, in size, to the next where r 2^-16 is below what lies beyond, in units of
 * that place. r are the upper 16 bits of the word of Philox4x32-10 that trine_dropout() would hold against its
 * threshold, of element i j in row-major order. Tensors and steps are to have streams of their own. One of f32 or f16
 * goes to the nearest in any case.
 *
 * Source: Shazeer and Stern 2018, algorithms 4 to 6; torch.optim.Adafactor.
 *
 * Shapes: param, grad and copy are [r] c, row_var is r, col_var c, the last five are 1, and 2 of philox. A dimension
 * that is missing in front is 1. The last dimension is contiguous, leading strides are free.
 * Types: param and grad are f32, bf16 or f16; row_var and col_var f32. Sums are in f64, other arithmetic in f32 and
 * f64, with one rounding for each output. step_tensor and philox are i64; grad_scale, lr_tensor and found_inf are f32.
 * Parameters: for a true zero in beta2_decay or eps2 pass -0.0.
 * Aliasing: no tensor may overlap another.
 *
 * Error bound: spec/optimizer/adafactor.c. A param rounded by chance is what chance makes of a number within that.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; step below 1; a parameter out of range or not finite, or set beside the tensor that stands for it; overlap),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_adafactor(trine_queue *queue, const trine_adafactor_args *args);

typedef struct trine_sgd_args {
    size_t struct_size;             /* sizeof(trine_sgd_args) */
    const trine_tensor *param;      /* in and out, optional [r] c */
    const trine_tensor *grad;       /* in [r] c */
    const trine_tensor *moment;     /* in and out, optional [r] c */
    const trine_tensor *update;     /* out, optional [r] c, f32: u */
    const trine_tensor *copy;       /* out, optional [r] c: param as bf16 or f16 */
    const trine_tensor *grad_scale; /* in, optional [1], f32: multiplies grad */
    const trine_tensor *lr_tensor;  /* in, optional [1], f32: in place of lr */
    const trine_tensor *found_inf;  /* in, optional [1], f32: if it is not 0, the step is skipped */
    const trine_tensor *philox;     /* in, optional [2], i64: in place of seed, and added to stream */
    float lr;                       /* learning rate, >= 0; 0 where lr_tensor is given */
    float momentum;                 /* 0 <= momentum <= 1 */
    float dampening;                /* 0 <= dampening <= 1 */
    float weight_decay;             /* >= 0 */
    float scale;                    /* of u in the step; 0: 1 */
    int32_t nesterov;               /* 1: the step looks ahead by a gradient like this one */
    uint64_t seed;                  /* of chance: key of the generator; 0 where philox is given */
    uint64_t stream;                /* high half of its counter: another for every call */
    int32_t stochastic;             /* 1: a param of bf16 goes up or down by chance */
} trine_sgd_args;

/* One step of gradient descent with momentum, in place. All parameters of a model are one list: trine_run_list().
 *
 *     g      = grad_scale grad
 *     moment = momentum moment + (1 - dampening) g
 *     u      = moment, or with nesterov (1 - dampening) g + momentum moment
 *     param  = param - lr weight_decay param - lr scale u
 *     copy   = param,  update = u
 *
 * Without a moment u is g. moment enters u, and param copy, before they are rounded. The decay is decoupled from the
 * gradient. Without param and copy it makes moment and update alone, for a step that makes more of u, as Muon does.
 *
 * lr_tensor, grad_scale, found_inf and philox are read when the op runs: a graph that was recorded takes what is there
 * each time it is launched. Where found_inf is not 0, NaN included, param and moment stay as they are, whatever grad
 * has, copy gets the unchanged param, and update is 0. lr_tensor is not looked at before it is used.
 *
 * With stochastic set a param of bf16 is rounded by chance, as trine_adamw() says, for element i j in row-major order.
 *
 * Source: Polyak 1964; Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning",
 * section 3; torch.optim.SGD; the decay is Loshchilov and Hutter 2019, algorithm 1.
 *
 * Shapes: param, grad, moment, update and copy are [r] c; a dimension that is missing in front is 1. The last dimension
 * is contiguous, leading strides are free. philox is 2, the others are 1. copy is given with param alone, and param or
 * update must be.
 * Types: param and grad are f32, bf16 or f16; moment f32 or bf16; update f32; copy bf16 or f16. Arithmetic is f32, with
 * one rounding for each output. grad_scale, lr_tensor and found_inf are f32, philox i64.
 * Parameters: for a true zero in scale pass -0.0.
 * Aliasing: no tensor may overlap another.
 *
 * Error bound, in units of 2^-24: moment 4 of its terms; update 6 of its own; param and copy 9 of lr |scale| times
 * those, and 4 of |param|(1 + lr weight_decay); spec/optimizer/sgd.c. A param rounded by chance is what chance makes of
 * a number within that.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range or not finite, or set beside the tensor that stands for it; overlap),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_sgd(trine_queue *queue, const trine_sgd_args *args);

typedef struct trine_adamw_quantized_args {
    size_t struct_size;              /* sizeof(trine_adamw_quantized_args) */
    const trine_tensor *param;       /* in and out n */
    const trine_tensor *grad;        /* in n */
    const trine_tensor *m;           /* in and out n, u8: codes */
    const trine_tensor *v;           /* in and out n, u8: codes */
    const trine_tensor *m_most;      /* in and out k, f32: largest |m| of each block */
    const trine_tensor *v_most;      /* in and out k, f32: largest v of each block */
    const trine_tensor *copy;        /* out, optional n: param as bf16 or f16 */
    const trine_tensor *grad_scale;  /* in, optional [1], f32: multiplies grad */
    const trine_tensor *lr_tensor;   /* in, optional [1], f32: in place of lr */
    const trine_tensor *step_tensor; /* in, optional [1], i64: in place of step */
    const trine_tensor *found_inf;   /* in, optional [1], f32: if it is not 0, the step is skipped */
    const trine_tensor *philox;      /* in, optional [2], i64: in place of seed, and added to stream */
    float lr;                        /* learning rate, >= 0; 0 where lr_tensor is given */
    float beta1;                     /* 0 <= beta1 < 1; 0: 0.9 */
    float beta2;                     /* 0 <= beta2 < 1; 0: 0.999 */
    float eps;                       /* >= 0; 0: 1e-8 */
    float weight_decay;              /* >= 0 */
    int64_t step;                    /* number of this step, from 1; 0 where step_tensor is given */
    uint64_t seed;                   /* of chance: key of the generator; 0 where philox is given */
    uint64_t stream;                 /* high half of its counter: another for every call */
    int32_t stochastic;              /* 1: a param of bf16 goes up or down by chance */
} trine_adamw_quantized_args;

/* One AdamW step, in place, with moments of 8 bits: trine_adamw() with 2 bytes of state for an element in place of 8.
 * All parameters of a model are one list: trine_run_list().
 *
 * With b1 = beta1, b2 = beta2, t = step, and b = i/256 the block of element i:
 *
 *     g      = grad_scale grad
 *     m'     = b1 signed_value[m] m_most[b] + (1-b1) g
 *     v'     = b2 unsigned_value[v] v_most[b] + (1-b2) g^2
 *     param  = param - lr weight_decay param - lr/(1-b1^t) m' / (sqrt(v')/sqrt(1-b2^t) + eps)
 *     copy   = param
 *     m_most = max |m'|,  v_most = max v'  of the block
 *     m, v   = the codes whose values are nearest to m'/m_most and v'/v_most
 *
 * The values of codes are dynamic tree quantization's: with f bits of fraction, d = 10^(f-6) (1/10 + 9/10 (j+1/2)/2^f)
 * for f from 0 to 6 and j from 0 to 2^f - 1, rounded to f32. signed_value has d and -d, 0 and 1; unsigned_value has d
 * with 2^(f+1) in place of 2^f, 0 and 1; both ascend with the code. Of two values that are as near the one nearer to 0
 * is taken. Where m_most or v_most is 0 so is every m' or v' of the block, and codes are those of 0; where it is Inf or
 * NaN they are too. m' and v' are what f32 makes of them, each product and each sum being rounded, so that codes and
 * most are the same on every device. A first step begins with m_most and v_most 0 and any codes.
 *
 * These are the codes of bitsandbytes' blockwise 8-bit optimizers with blocks of 256: state1 and state2 are m and v,
 * absmax1 and absmax2 m_most and v_most, whose values differ in the last place of f32 at most.
 *
 * lr_tensor, step_tensor, grad_scale, found_inf and philox are read when the op runs: a graph that was recorded takes
 * what is there each time it is launched. Where found_inf is not 0, NaN included, param and all state stay as they are,
 * whatever grad has, and copy gets the unchanged param; step_tensor is the caller's to raise or not. A step_tensor
 * below 1 is an error on the CPU, and on devices makes param and copy NaN. lr_tensor is not looked at before it is
 * used.
 *
 * With stochastic set a param of bf16 goes up or down by chance, so that steps of less than half of its last place
 * count on average: to the number beneath or, in size, to the next where r 2^-16 is below what lies beyond, in units of
 * that place. r are the upper 16 bits of the word of Philox4x32-10 that trine_dropout() would hold against its
 * threshold, of element i. Tensors and steps are to have streams of their own. One of f32 or f16 goes to the nearest in
 * any case.
 *
 * Source: Dettmers et al. 2022, "8-bit optimizers via block-wise quantization", section 2; Loshchilov and Hutter 2019,
 * algorithm 2.
 *
 * Shapes: param, grad, m, v and copy are n, contiguous, m_most and v_most k with n <= 256 k; what they have behind the
 * last block stays as it is. The last five are 1, and 2 of philox.
 * Types: param and grad are f32, bf16 or f16; m and v u8; m_most and v_most f32. Arithmetic is f32. step_tensor and
 * philox are i64; grad_scale, lr_tensor and found_inf are f32.
 * Parameters: for a true zero in beta1, beta2 or eps pass -0.0.
 * Aliasing: no tensor may overlap another.
 *
 * Error bound: m, v, m_most and v_most are exact; param and copy 24 2^-24 of the length of the step, and 4 of |param|(1
 * + lr weight_decay); spec/optimizer/adamw_quantized.c. One that chance rounds is a neighbour of what it is within that
 * of, which one telling chance.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; step below 1; a parameter out of range or not finite, or set beside the tensor that stands for it; overlap),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_adamw_quantized(trine_queue *queue, const trine_adamw_quantized_args *args);

/* What a step of Muon makes orthogonal, how far it goes, and in what type. */
enum {
    TRINE_MUON_NESTEROV = 0, /* (1-momentum) grad + momentum times the new moment */
    TRINE_MUON_MOMENT = 1,   /* the new moment */

    TRINE_MUON_ORIGINAL = 0,  /* sqrt(max(1, m/n)) */
    TRINE_MUON_MATCH_RMS = 1, /* sqrt(max(m, n))/5, steps then being as large as AdamW's */
    TRINE_MUON_UNSCALED = 2,  /* 1 */

    TRINE_MUON_FULL = 0, /* f32 */
    TRINE_MUON_BF16 = 1  /* matrices are rounded to bf16, as published */
};

typedef struct trine_muon_args {
    size_t struct_size;             /* sizeof(trine_muon_args) */
    const trine_tensor *param;      /* in and out m n */
    const trine_tensor *grad;       /* in m n */
    const trine_tensor *moment;     /* in and out m n */
    const trine_tensor *copy;       /* out, optional m n: param as bf16 or f16 */
    const trine_tensor *grad_scale; /* in, optional [1], f32: multiplies grad */
    const trine_tensor *lr_tensor;  /* in, optional [1], f32: in place of lr */
    const trine_tensor *found_inf;  /* in, optional [1], f32: if it is not 0, the step is skipped */
    const trine_tensor *philox;     /* in, optional [2], i64: in place of seed, and added to stream */
    float lr;                       /* learning rate, >= 0; 0 where lr_tensor is given */
    float momentum;                 /* 0 <= momentum < 1; 0: 0.95 */
    float weight_decay;             /* >= 0 */
    float eps;                      /* least norm; 0: 1e-7 */
    float ns_a;                     /* coefficients of the iteration; 0: 3.4445 */
    float ns_b;                     /* 0: -4.775 */
    float ns_c;                     /* 0: 2.0315 */
    int32_t ns_steps;               /* from 1; 0: 5 */
    int32_t update;                 /* TRINE_MUON_* of steps */
    int32_t adjust;                 /* TRINE_MUON_* of scales */
    int32_t precision;              /* TRINE_MUON_* of matrices */
    uint64_t seed;                  /* of chance: key of the generator; 0 where philox is given */
    uint64_t stream;                /* high half of its counter: another for every call */
    int32_t stochastic;             /* 1: a param of bf16 goes up or down by chance */
} trine_muon_args;

/* One step of Muon, in place: the moment of a matrix made nearly orthogonal by Newton and Schulz's iteration.
 *
 *     g      = grad_scale grad
 *     moment = momentum moment + (1-momentum) g
 *     u      = (1-momentum) g + momentum moment, or moment
 *     x      = u / max(|u|, eps),  |u| the root of the sum of squares
 *     x      = ns_a x + (ns_b s + ns_c s^2) x,  s = x x^T,  ns_steps times
 *     param  = param - lr weight_decay param - lr scale x
 *     copy   = param
 *
 * scale is sqrt(max(1, m/n)), or sqrt(max(m, n))/5 with TRINE_MUON_MATCH_RMS. moment enters u, and param copy, before
 * they are rounded. Where there are more rows than columns s is x^T x and multiplies from the right: the result is the
 * same and the products are smaller. It is for the matrices of hidden layers; embeddings, the head, biases and weights
 * of norms are AdamW's.
 *
 * The iteration brings singular values near 1, small ones a factor ns_a in each step, with roundings that came before:
 * five steps make 500 of 1. TRINE_MUON_BF16 rounds x and s to bf16, and a sum of products once to bf16; it is faster
 * where matrix units are, and its results are orthogonal to two digits, while single elements may be others.
 *
 * lr_tensor, grad_scale, found_inf and philox are read when the op runs: a graph that was recorded takes what is there
 * each time it is launched. Where found_inf is not 0, NaN included, param and moment stay as they are, whatever grad
 * has, and copy gets the unchanged param. lr_tensor is not looked at before it is used. With stochastic set a param of
 * bf16 is rounded by chance, as trine_adamw() says, for element i j in row-major order.
 *
 * Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"; torch.optim.Muon; the scale
 * of Liu et al. 2025, "Muon is scalable for LLM training".
 *
 * Shapes: matrices are m n, their rows contiguous and any distance apart. philox is 2, the others are 1.
 * Types: param and grad are f32, bf16 or f16; moment f32 or bf16; copy bf16 or f16. Arithmetic is f32, the sum of
 * squares f64. grad_scale, lr_tensor and found_inf are f32, philox i64.
 * Parameters: for a true zero in momentum or a coefficient pass -0.0; eps is at least 1e-20.
 * Aliasing: no tensor may overlap another.
 *
 * Error bound: moment 4 2^-24 of its terms; param and copy 4 2^-24 of theirs, and lr scale times what the iteration is
 * off by, which the largest slope of its polynomial multiplies in each step; spec/optimizer/muon.c. That is for the
 * worst matrix: of TRINE_MUON_BF16 it leaves nothing certain after three steps or so, of f32 little where n is large.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range or not finite, or set beside the tensor that stands for it; overlap),
 * TRINE_ERR_UNSUPPORTED (a product or sum that it is made of has no kernel on the device), TRINE_ERR_WORKSPACE (strict
 * queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_muon(trine_queue *queue, const trine_muon_args *args);

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
