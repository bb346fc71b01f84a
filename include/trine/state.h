/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences along time whose state is a matrix: linear attention with gates and the delta rule, Mamba-2. */
#ifndef TRINE_STATE_H
#define TRINE_STATE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_gated_delta_args {
    size_t struct_size;             /* sizeof(trine_gated_delta_args) */
    const trine_tensor *q;          /* in [b] t hk d */
    const trine_tensor *k;          /* in [b] t hk d */
    const trine_tensor *v;          /* in [b] t h e */
    const trine_tensor *g;          /* in, optional [b] t h, f32: logarithms of gates */
    const trine_tensor *beta;       /* in, optional [b] t h, f32: rates of the delta rule */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then b must be 1 */
    const trine_tensor *s0;         /* in, optional [s] h d e, f32: states before the first step */
    const trine_tensor *o;          /* out [b] t h e */
    const trine_tensor *last;       /* out, optional [s] h d e, f32: states after the last step; may be s0 */
    float scale;                    /* of o; 0: 1/sqrt(d) */
} trine_gated_delta_args;

/* Linear attention with a gate and the delta rule: each head has a matrix, which a step decays and corrects.
 *
 *     P[b,t,h] = exp(g[b,t,h]) S[b,t-1,h],  S[b,-1,h] = s0[b,h]
 *     S[b,t,h] = P[b,t,h] + k[b,t,m] u[b,t,h]^T,  u = beta (v - P^T k),  m = h / (h/hk)
 *     o[b,t,h] = scale S[b,t,h]^T q[b,t,m],  last[b,h] = S[b,T-1,h], T the number of steps
 *
 * m: consecutive heads share a key head, where there are fewer. Without g the gate is 1: DeltaNet. Without beta there
 * is no delta rule, and u = v: gated linear attention, retention, Lightning Attention. A rate of 1 for all steps is a
 * beta of ones. Without s0 states begin with 0. k is taken as it is: the delta rule is stable where beta is in [0, 1]
 * and k has length 1. last is s0 of a sequence without steps, or 0 if there is no s0. States are kept in f32 and not
 * rounded, so that a sequence in several calls, each with the last of the one before as its s0, gives the same as in
 * one, but for bits: a step of decoding is a call with t = 1.
 *
 * Packed sequences: with cu_seqlens, b is 1. Sequence i has the steps cu_seqlens[i] .. cu_seqlens[i+1]-1, and row i of
 * s0 and of last. Behind the last sequence there may be room, where o is 0.
 *
 * Source: Yang et al. 2025 (Gated DeltaNet), equation 10; Yang et al. 2024 (DeltaNet), section 3; names, the scale and
 * the logarithms of gates as in flash-linear-attention.
 *
 * Shapes: q and k are [b] t hk d with 1 <= d <= 256, v and o [b] t h e, h a multiple of hk, g and beta [b] t h, s0 and
 * last [s] h d e, s being nseq with cu_seqlens, else b; b and s may be left out. The last dimension is contiguous,
 * leading strides are free.
 * Types: q, k, v and o are f32, bf16 or f16, the same; g, beta, s0 and last f32, cu_seqlens i32. Accumulation is f32.
 * Aliasing: last may be s0, the very same view. No other output may overlap another tensor.
 *
 * Error bound: the errors of all steps' roundings, each no more than what later steps make of it, as lengths of the
 * states' columns, besides one rounding of o's type; spec/state/state.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output
 * that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gated_delta(trine_queue *queue, const trine_gated_delta_args *args);

typedef struct trine_gated_delta_backward_args {
    size_t struct_size;             /* sizeof(trine_gated_delta_backward_args) */
    const trine_tensor *dout;       /* in [b] t h e: of o */
    const trine_tensor *q;          /* in [b] t hk d */
    const trine_tensor *k;          /* in [b] t hk d */
    const trine_tensor *v;          /* in [b] t h e */
    const trine_tensor *g;          /* in, optional [b] t h, f32 */
    const trine_tensor *beta;       /* in, optional [b] t h, f32 */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: the forward's; then b must be 1 */
    const trine_tensor *s0;         /* in, optional [s] h d e, f32 */
    const trine_tensor *dlast;      /* in, optional [s] h d e, f32 */
    const trine_tensor *dq;         /* out [b] t hk d */
    const trine_tensor *dk;         /* out [b] t hk d */
    const trine_tensor *dv;         /* out [b] t h e */
    const trine_tensor *dg;         /* out, optional [b] t h, f32 */
    const trine_tensor *dbeta;      /* out, optional [b] t h, f32 */
    const trine_tensor *ds0;        /* out, optional [s] h d e, f32 */
    float scale;                    /* the forward's */
} trine_gated_delta_backward_args;

/* Gradient of trine_gated_delta(): from the last step to the first, with the states of the forward computed again.
 *
 *     G[t]  = exp(g[t+1]) H[t+1] + scale q[t] dout[t]^T,  at the last step dlast + scale q dout^T
 *     H[t]  = G[t] - k[t] dv[t]^T,  dv[t] = beta[t] G[t]^T k[t];  without beta H = G, dv = G^T k
 *     dq[t] = scale S[t] dout[t],  dk[t] = G[t] u[t] - P[t] dv[t],  the last term with beta alone
 *     dg[t] = sum of H[t] P[t],  dbeta[t] = k[t]^T G[t] w[t],  w = v - P^T k,  ds0 = exp(g[0]) H[0]
 *
 * All of a sequence and a head, as P, S and u are in trine_gated_delta(); dq and dk are sums over the heads that share
 * a key head. ds0 of a sequence without steps is dlast, or 0 if there is none. Behind the last of packed sequences
 * gradients are 0. Workspace: of a sequence and a head, about two roots of t as many states as there are.
 *
 * Source: the derivative of trine_gated_delta()'s formula.
 *
 * Shapes: dout, v and dv are [b] t h e, q, k, dq and dk [b] t hk d with 1 <= d <= 256, h a multiple of hk, g, beta, dg
 * and dbeta [b] t h, s0, dlast and ds0 [s] h d e, s being nseq with cu_seqlens, else b; b and s may be left out. The
 * last dimension is contiguous, leading strides are free. dg asks for g, dbeta for beta, ds0 for s0.
 * Types: dout, q, k, v, dq, dk and dv are f32, bf16 or f16, the same; the others f32, cu_seqlens i32. Accumulation is
 * f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of trine_gated_delta(), for the states and for their gradients, and of sums of products of the two;
 * spec/state/state_backward.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; dg without g, dbeta without beta, ds0 without s0; cu_seqlens that do not ascend from
 * 0 to at most t, on devices: all is NaN; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device
 * has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gated_delta_backward(trine_queue *queue, const trine_gated_delta_backward_args *args);

typedef struct trine_ssd_args {
    size_t struct_size;             /* sizeof(trine_ssd_args) */
    const trine_tensor *x;          /* in [b] t h p */
    const trine_tensor *dt;         /* in [b] t h, f32: lengths of steps */
    const trine_tensor *a;          /* in h, f32: rates of decay, below 0 */
    const trine_tensor *b;          /* in [b] t g n */
    const trine_tensor *c;          /* in [b] t g n */
    const trine_tensor *d;          /* in, optional h, f32: what of x goes past the state */
    const trine_tensor *dt_bias;    /* in, optional h, f32 */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then the batch must be 1 */
    const trine_tensor *s0;         /* in, optional [s] h p n, f32: states before the first step */
    const trine_tensor *y;          /* out [b] t h p */
    const trine_tensor *last;       /* out, optional [s] h p n, f32: states after the last step; may be s0 */
    int32_t softplus;               /* 1: steps are the softplus of dt + dt_bias */
} trine_ssd_args;

/* The scan of Mamba-2: state space duality.
 *
 *     l[t] = dt[t] + dt_bias, or with softplus log(1 + exp(dt[t] + dt_bias))
 *     S[t] = exp(l[t] a) S[t-1] + l[t] x[t] b[t]^T,  S[-1] = s0
 *     y[t] = S[t] c[t] + d x[t],  last = S[T-1], T the number of steps
 *
 * All of a member of the batch and a head; b and c are those of group h / (heads / groups): consecutive heads share
 * them. Without s0 states begin with 0. last is s0 of a sequence without steps, or 0 if there is no s0. States are kept
 * in f32 and not rounded, so that a sequence in several calls, each with the last of the one before as its s0, gives
 * the same as in one, but for bits: a step of decoding is a call with t = 1. The gate z of a layer is a product behind
 * it, trine_swiglu() or a norm with a gate.
 *
 * Packed sequences: with cu_seqlens, the batch is 1. Sequence i has the steps cu_seqlens[i] .. cu_seqlens[i+1]-1, and
 * row i of s0 and of last. Behind the last sequence there may be room, where y is 0.
 *
 * Source: Dao and Gu 2024 (Mamba-2), section 6, listing 1; names and shapes as in mamba_chunk_scan_combined and
 * selective_state_update of mamba_ssm.
 *
 * Shapes: x and y are [b] t h p, dt [b] t h, a, d and dt_bias h, b and c [b] t g n with 1 <= n <= 256, h a multiple of
 * g, s0 and last [s] h p n, s being nseq with cu_seqlens, else the batch; batch and s may be left out. The last
 * dimension is contiguous, leading strides are free.
 * Types: x, b, c and y are f32, bf16 or f16, the same; the others f32, cu_seqlens i32. Accumulation is f32.
 * Aliasing: last may be s0, the very same view. No other output may overlap another tensor.
 *
 * Error bound: the errors of all steps' roundings, each as later steps decay it, as lengths of the states' columns,
 * besides one rounding of y's type; spec/state/state.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output
 * that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_ssd(trine_queue *queue, const trine_ssd_args *args);

typedef struct trine_ssd_backward_args {
    size_t struct_size;             /* sizeof(trine_ssd_backward_args) */
    const trine_tensor *dy;         /* in [b] t h p */
    const trine_tensor *x;          /* in [b] t h p */
    const trine_tensor *dt;         /* in [b] t h, f32 */
    const trine_tensor *a;          /* in h, f32 */
    const trine_tensor *b;          /* in [b] t g n */
    const trine_tensor *c;          /* in [b] t g n */
    const trine_tensor *d;          /* in, optional h, f32 */
    const trine_tensor *dt_bias;    /* in, optional h, f32 */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: the forward's; then the batch must be 1 */
    const trine_tensor *s0;         /* in, optional [s] h p n, f32 */
    const trine_tensor *dlast;      /* in, optional [s] h p n, f32 */
    const trine_tensor *dx;         /* out [b] t h p */
    const trine_tensor *ddt;        /* out [b] t h, f32 */
    const trine_tensor *da;         /* out h, f32 */
    const trine_tensor *db;         /* out [b] t g n */
    const trine_tensor *dc;         /* out [b] t g n */
    const trine_tensor *dd;         /* out, optional h, f32 */
    const trine_tensor *ddt_bias;   /* out, optional h, f32 */
    const trine_tensor *ds0;        /* out, optional [s] h p n, f32 */
    int32_t softplus;               /* the forward's */
} trine_ssd_backward_args;

/* Gradient of trine_ssd(): from the last step to the first, with the states of the forward computed again.
 *
 *     G[t]   = exp(l[t+1] a) G[t+1] + dy[t] c[t]^T,  at the last step dlast + dy c^T
 *     dx[t]  = l[t] G[t] b[t] + d dy[t],  db[t] = l[t] G[t]^T x[t],  dc[t] = S[t]^T dy[t]
 *     dl[t]  = x[t]^T G[t] b[t] + a r[t],  r[t] = exp(l[t] a) sum of G[t] S[t-1]
 *     ddt[t] = dl[t], or with softplus dl[t] sigmoid(dt[t] + dt_bias),  ds0 = exp(l[0] a) G[0]
 *     da     = sum over the batch and t of l[t] r[t],  dd of dy[t]^T x[t],  ddt_bias of ddt[t]
 *
 * All of a member of the batch and a head; db and dc are sums over the heads that share a group. ds0 of a sequence
 * without steps is dlast, or 0 if there is none. Behind the last of packed sequences gradients are 0. Workspace: of a
 * sequence and a head, about two roots of t as many states as there are.
 *
 * Source: the derivative of trine_ssd()'s formula.
 *
 * Shapes: dy, x and dx are [b] t h p, dt and ddt [b] t h, a, d, dt_bias, da, dd and ddt_bias h, b, c, db and dc [b] t g
 * n with 1 <= n <= 256, h a multiple of g, s0, dlast and ds0 [s] h p n, s being nseq with cu_seqlens, else the batch;
 * batch and s may be left out. The last dimension is contiguous, leading strides are free. dd asks for d, ddt_bias for
 * dt_bias, ds0 for s0.
 * Types: dy, x, b, c, dx, db and dc are f32, bf16 or f16, the same; the others f32, cu_seqlens i32. Accumulation is
 * f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of trine_ssd(), for the states and for their gradients, and of sums of products of the two;
 * spec/state/state_backward.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; dd without d, ddt_bias without dt_bias, ds0 without s0; cu_seqlens that do not
 * ascend from 0 to at most t, on devices: all is NaN; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED
 * (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_ssd_backward(trine_queue *queue, const trine_ssd_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
