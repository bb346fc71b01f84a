/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences and convolutions along time, channel by channel. */
#ifndef TRINE_SCAN_H
#define TRINE_SCAN_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_linear_scan_args {
    size_t struct_size;             /* sizeof(trine_linear_scan_args) */
    const trine_tensor *x;          /* in [b] t n */
    const trine_tensor *g;          /* in [b] t n: gates */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then b must be 1 */
    const trine_tensor *h0;         /* in, optional [s] n, f32: states before the first step */
    const trine_tensor *y;          /* out [b] t n */
    const trine_tensor *last;       /* out, optional [s] n, f32: states after the last step */
    int32_t reverse;                /* 1: from the end of each sequence to its beginning */
} trine_linear_scan_args;

/* A gated linear recurrence along time, each channel by itself.
 *
 *     y[b,t,j] = g[b,t,j] y[b,t-1,j] + x[b,t,j],  y[b,-1,j] = h0[b,j]
 *     last[b,j] = y[b,T-1,j], T the number of steps
 *
 * With reverse, time runs the other way: y[b,t] follows from y[b,t+1], h0 stands for y[b,T], and last is y[b,0].
 * Without h0 the first step has y = x, whatever its gate is. last is h0 of a sequence without steps, or 0 if there is
 * no h0. The state is kept in f32 and rounded for y alone, so that a sequence in several calls, each with the last of
 * the one before as its h0, gives the same as in one, but for bits.
 *
 * Packed sequences: with cu_seqlens, b is 1. Sequence i has the steps cu_seqlens[i] .. cu_seqlens[i+1]-1, and row i of
 * h0 and of last. Behind the last sequence there may be room, where y is 0.
 *
 * The recurrence of HGRN and of MatMul-free language models is that of g = f and x = (1 - f) c. Generalized advantages
 * are that of reverse, g = gamma lambda (1 - done), and the temporal differences as x.
 *
 * Source: Qin et al. 2023 (HGRN), section 3; Zhu et al. 2024 (MatMul-free LM), section 3.3.1; Schulman et al. 2016
 * (generalized advantage estimation), section 3.
 *
 * Shapes: x, g and y are [b] t n, h0 and last [s] n, s being nseq with cu_seqlens, else b; b and s may be left out. The
 * last dimension is contiguous, leading strides are free.
 * Types: x, g and y are f32, bf16 or f16, the same; h0 and last f32, cu_seqlens i32. Accumulation is f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: two roundings of f32 for each step that a term passes through, of the terms' absolute values, besides
 * one of y's type; spec/scan/scan.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output
 * that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_linear_scan(trine_queue *queue, const trine_linear_scan_args *args);

typedef struct trine_linear_scan_backward_args {
    size_t struct_size;             /* sizeof(trine_linear_scan_backward_args) */
    const trine_tensor *dy;         /* in [b] t n */
    const trine_tensor *g;          /* in [b] t n */
    const trine_tensor *y;          /* in [b] t n: as trine_linear_scan() wrote it */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: the forward's; then b must be 1 */
    const trine_tensor *h0;         /* in, optional [s] n, f32 */
    const trine_tensor *dlast;      /* in, optional [s] n, f32 */
    const trine_tensor *dx;         /* out [b] t n */
    const trine_tensor *dg;         /* out [b] t n */
    const trine_tensor *dh0;        /* out, optional [s] n, f32 */
    int32_t reverse;                /* the forward's */
} trine_linear_scan_backward_args;

/* Gradient of trine_linear_scan(): a scan the other way.
 *
 *     dh[b,t,j] = dy[b,t,j] + g[b,t+1,j] dh[b,t+1,j],  at the last step dy[b,t,j] + dlast[b,j]
 *     dx = dh,  dg[b,t,j] = dh[b,t,j] y[b,t-1,j],  dh0[b,j] = g[b,0,j] dh[b,0,j]
 *
 * y[b,-1] is h0; without h0 the first step's dg is 0. With reverse, time runs the other way. dh is kept in f32. y is
 * what the forward wrote, rounded to its type, so that dg has that rounding of it. dh0 of a sequence without steps is
 * dlast, or 0 if there is none. Behind the last of packed sequences dx and dg are 0.
 *
 * Source: the derivative of trine_linear_scan()'s formula.
 *
 * Shapes: dy, g, y, dx and dg are [b] t n, h0, dlast and dh0 [s] n, s being nseq with cu_seqlens, else b; b and s may
 * be left out. The last dimension is contiguous, leading strides are free. dh0 asks for h0.
 * Types: dy, g, y, dx and dg are f32, bf16 or f16, the same; h0, dlast and dh0 f32, cu_seqlens i32. Accumulation is
 * f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of trine_linear_scan(), and one more rounding of dg and dh0; spec/scan/scan.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; dh0 without h0; cu_seqlens that do not ascend from 0 to at most t, on devices: all
 * is NaN; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_linear_scan_backward(trine_queue *queue, const trine_linear_scan_backward_args *args);

typedef struct trine_conv1d_causal_args {
    size_t struct_size;             /* sizeof(trine_conv1d_causal_args) */
    const trine_tensor *x;          /* in [b] t n */
    const trine_tensor *weight;     /* in n k: of each channel, the tap of the newest step last */
    const trine_tensor *bias;       /* in, optional n */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then b must be 1 */
    const trine_tensor *x0;         /* in, optional [s] k-1 n: the steps before the first one */
    const trine_tensor *y;          /* out [b] t n */
    const trine_tensor *last;       /* out, optional [s] k-1 n: the last steps, for what follows */
    int32_t silu;                   /* 1: y is the silu of the sum */
} trine_conv1d_causal_args;

/* A causal convolution along time, each channel with taps of its own.
 *
 *     z[b,t,j]    = sum over i < k of weight[j,i] x[b,t-k+1+i,j] + bias[j]
 *     y           = z, or with silu z sigmoid(z)
 *     last[b,i,j] = x[b,T-k+1+i,j],  T the number of steps
 *
 * x[b,-k+1+i] is x0[b,i]. Without x0 there is nothing before the first step: its taps are left out, and last has 0
 * there. A sequence in several calls, each with the last of the one before as its x0, gives the same as in one.
 *
 * Packed sequences: with cu_seqlens, b is 1. Sequence i has the steps cu_seqlens[i] .. cu_seqlens[i+1]-1, and row i of
 * x0 and of last. Behind the last sequence there may be room, where y is 0.
 *
 * Source: Gu and Dao 2023 (Mamba), section 3.4, and its causal-conv1d, whose weight this is; what stands there as b n t
 * is a view with other strides of the arrays that stand here as b t n.
 *
 * Shapes: x and y are [b] t n, weight n k with 1 <= k <= 8, bias n, x0 and last [s] k-1 n, s being nseq with
 * cu_seqlens, else b; b and s may be left out. The last dimension is contiguous, leading strides are free.
 * Types: x, y, x0 and last are f32, bf16 or f16, the same; weight and bias of that type or both f32; cu_seqlens i32.
 * Accumulation is f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: k + 2 roundings of f32 of |weight| |x| + |bias|, and with silu 14 of |y|, besides one of y's type;
 * spec/scan/conv1d.h. last is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output
 * that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_conv1d_causal(trine_queue *queue, const trine_conv1d_causal_args *args);

typedef struct trine_conv1d_causal_backward_args {
    size_t struct_size;             /* sizeof(trine_conv1d_causal_backward_args) */
    const trine_tensor *dy;         /* in [b] t n */
    const trine_tensor *x;          /* in [b] t n */
    const trine_tensor *weight;     /* in n k */
    const trine_tensor *bias;       /* in, optional n */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: the forward's; then b must be 1 */
    const trine_tensor *x0;         /* in, optional [s] k-1 n */
    const trine_tensor *dx;         /* out [b] t n */
    const trine_tensor *dweight;    /* out n k */
    const trine_tensor *dbias;      /* out, optional n */
    const trine_tensor *dx0;        /* out, optional [s] k-1 n */
    int32_t silu;                   /* the forward's */
} trine_conv1d_causal_backward_args;

/* Gradient of trine_conv1d_causal().
 *
 *     dz[b,t,j]    = dy[b,t,j], or with silu dy s (1 + z (1 - s)),  s = sigmoid(z)
 *     dx[b,t,j]    = sum over i < k of weight[j,i] dz[b,t+k-1-i,j]
 *     dweight[j,i] = sum over b and t of dz[b,t,j] x[b,t-k+1+i,j]
 *     dbias[j]     = sum over b and t of dz[b,t,j]
 *     dx0[b,i]     = dx[b,-k+1+i], by the formula of dx
 *
 * Sums over t are of the steps that there are, and z is computed again. last has no part in it. dx is 0 behind the last
 * of packed sequences.
 *
 * Source: the derivative of trine_conv1d_causal()'s formula.
 *
 * Shapes: dy, x and dx are [b] t n, weight and dweight n k with 1 <= k <= 8, bias and dbias n, x0 and dx0 [s] k-1 n, s
 * being nseq with cu_seqlens, else b; b and s may be left out. The last dimension is contiguous, leading strides are
 * free. dbias asks for bias, dx0 for x0.
 * Types: dy, x, x0, dx and dx0 are f32, bf16 or f16, the same; weight, bias, dweight and dbias of that type or all f32;
 * cu_seqlens i32. Accumulation is f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of dx and dx0, k + 2 roundings of f32 of |weight| |dz|; of dweight and dbias, min(b t, 256) + b t/256 +
 * 16 of |dz| |x| and of |dz|; besides one of the type, and what the errors of z make of dz: spec/scan/conv1d.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; dbias without bias, dx0 without x0; cu_seqlens that do not ascend from 0 to at most
 * t, on devices: all is NaN; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_conv1d_causal_backward(trine_queue *queue, const trine_conv1d_causal_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
