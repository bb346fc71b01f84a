/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent networks whose heads have a matrix each: the products of the inputs are made beforehand. */
#ifndef TRINE_RECURRENT_H
#define TRINE_RECURRENT_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_lstm_args {
    size_t struct_size;             /* sizeof(trine_lstm_args) */
    const trine_tensor *wx;         /* in [b] t 4 h d: products of the inputs */
    const trine_tensor *r;          /* in h 4 d d: recurrent weights */
    const trine_tensor *bias;       /* in, optional 4 h d */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then b must be 1 */
    const trine_tensor *h0;         /* in, optional [s] h d, f32: start states */
    const trine_tensor *c0;         /* in, optional [s] h d, f32 */
    const trine_tensor *y;          /* out [b] t h d: the states h */
    const trine_tensor *gates;      /* out, optional [b] t 4 h d; what the gradient needs */
    const trine_tensor *c;          /* out, optional [b] t h d, f32; likewise */
    const trine_tensor *last_h;     /* out, optional [s] h d, f32: states after the last step */
    const trine_tensor *last_c;     /* out, optional [s] h d, f32 */
} trine_lstm_args;

/* Long short-term memory along time, head by head.
 *
 *     g[q]   = wx[t,q] + r[q] h[t-1] + bias[q],  q = i, f, z, o
 *     c[t]   = sigmoid(g[f]) c[t-1] + sigmoid(g[i]) tanh(g[z])
 *     h[t]   = sigmoid(g[o]) tanh(c[t]),  y = h
 *
 * Each head has its own r, of which r[q,j,k] is the weight of h[k] in gate q of j. With one head it is torch.nn.LSTM,
 * whose order of gates this is, wx being the product of the inputs and weight_ih, r weight_hh, and bias the sum of
 * both. h[-1] and c[-1] are h0 and c0, or 0; without h0 the first step has no product. A sequence in several calls,
 * each with the last states of the one before, gives the same as in one, but for bits.
 *
 * Packed sequences: with cu_seqlens, b is 1. Sequence i has the steps cu_seqlens[i] .. cu_seqlens[i+1]-1, and row i of
 * the start and last states. Behind the last sequence there may be room, where outputs are 0. Last states of a sequence
 * without steps are the start states, or 0.
 *
 * gates are g, rounded to the type of y; gates, c and y are what trine_lstm_backward() needs.
 *
 * Source: Hochreiter and Schmidhuber 1997; Gers et al. 2000 (the forget gate); Poppel et al. 2024 (FlashRNN), section 3
 * (heads).
 *
 * Shapes: wx and gates are [b] t 4 h d; y and c are [b] t h d, r h 4 d d, bias 4 h d; h0 and last_h, c0 and last_c [s]
 * h d, s being nseq with cu_seqlens, else b; b and s may be left out. The last dimension is contiguous, leading strides
 * are free.
 * Types: wx, r, bias, y and gates are f32, bf16 or f16, the same; start and last states, c f32, cu_seqlens i32. States
 * and sums are f32, and rounded for outputs alone.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: what roundings of f32 make of each step, carried through the recurrence: d + 4 of each product of r and
 * h, of sigmoid and tanh 12; spec/recurrent/cells.h. It grows with the steps as far as r lets errors grow.
 * Inf times a subnormal may be anything.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output that overlaps another
 * tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_lstm(trine_queue *queue, const trine_lstm_args *args);

typedef struct trine_lstm_backward_args {
    size_t struct_size;             /* sizeof(trine_lstm_backward_args) */
    const trine_tensor *dy;         /* in [b] t h d */
    const trine_tensor *gates;      /* in [b] t 4 h d: as the forward wrote them, as all that it saved */
    const trine_tensor *c;          /* in [b] t h d, f32 */
    const trine_tensor *y;          /* in [b] t h d */
    const trine_tensor *r;          /* in h 4 d d */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1 */
    const trine_tensor *h0;         /* in, optional [s] h d, f32 */
    const trine_tensor *c0;         /* in, optional [s] h d, f32 */
    const trine_tensor *dlast_h;    /* in, optional [s] h d, f32 */
    const trine_tensor *dlast_c;    /* in, optional [s] h d, f32 */
    const trine_tensor *dwx;        /* out [b] t 4 h d */
    const trine_tensor *dr;         /* out h 4 d d */
    const trine_tensor *dbias;      /* out, optional 4 h d */
    const trine_tensor *dh0;        /* out, optional [s] h d, f32 */
    const trine_tensor *dc0;        /* out, optional [s] h d, f32 */
} trine_lstm_backward_args;

/* Gradient of trine_lstm(), from what that saved.
 *
 *     dh    = dy[t] + sum_q r[q]' dg[t+1,q],  at the last step dy + dlast_h; i, f, o: sigmoids of gates, z: tanh
 *     dc[t] = dh o (1 - tanh(c)^2) + f[t+1] dc[t+1],  at the last step with dlast_c
 *     dg    = dc z i (1-i), dc c[t-1] f (1-f), dc i (1-z^2), dh tanh(c) o (1-o),  dwx = dg
 *     dr[q] = sum over t of dg[t,q] h[t-1]',  dbias[q] = sum over t of dg[t,q]
 *     dh0   = sum_q r[q]' dg[0,q],  dc0 = f[0] dc[0]
 *
 * Sums over t are over all sequences. h[t-1] is y, which the forward rounded, or h0, or 0. dh0 and dc0 of a sequence
 * without steps are dlast_h and dlast_c, or 0. dwx is 0 behind the last of packed sequences.
 *
 * Source: the derivative of trine_lstm()'s formula.
 *
 * Shapes: dy, y, c are [b] t h d, gates [b] t 4 h d, dwx [b] t 4 h d, r and dr h 4 d d, dbias 4 h d; states and their
 * gradients [s] h d, as in trine_lstm(). dh0 asks for h0; dc0 asks for c0.
 * Types: dy, y, gates, r, dwx, dr and dbias are f32, bf16 or f16, the same; c, states and their gradients f32,
 * cu_seqlens i32. Accumulation is f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of the forward, of sums of |dz| |r| from each step to the next; of dr and dbias, as many roundings of
 * their terms as there are steps; spec/recurrent/cells.h. Inf times a subnormal may be anything.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; dh0 without h0, dc0 without c0; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an
 * output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict
 * queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_lstm_backward(trine_queue *queue, const trine_lstm_backward_args *args);

typedef struct trine_gru_args {
    size_t struct_size;             /* sizeof(trine_gru_args) */
    const trine_tensor *wx;         /* in [b] t 3 h d: products of the inputs */
    const trine_tensor *r;          /* in h 3 d d: recurrent weights */
    const trine_tensor *bias;       /* in, optional 4 h d */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then b must be 1 */
    const trine_tensor *h0;         /* in, optional [s] h d, f32: start states */
    const trine_tensor *y;          /* out [b] t h d: the states h */
    const trine_tensor *gates;      /* out, optional [b] t 4 h d; what the gradient needs */
    const trine_tensor *last_h;     /* out, optional [s] h d, f32: states after the last step */
} trine_gru_args;

/* Gated recurrent unit along time, head by head.
 *
 *     a      = r[n] h[t-1] + bias[hn]
 *     g[r]   = wx[t,r] + r[r] h[t-1] + bias[r],  g[z] likewise
 *     g[n]   = wx[t,n] + bias[n] + sigmoid(g[r]) a
 *     h[t]   = sigmoid(g[z]) h[t-1] + (1 - sigmoid(g[z])) tanh(g[n]),  y = h
 *
 * The convention is PyTorch's: the reset gate acts behind the product, so that n has a bias inside it and one beside
 * it. Gates are in the order r, z, n, biases r, z, n, hn. With one head it is torch.nn.GRU, r being weight_hh. Heads,
 * start states and packed sequences are as in trine_lstm().
 *
 * gates are g[r], g[z], g[n] and a, rounded to the type of y; gates and y are what trine_gru_backward() needs.
 *
 * Source: Cho et al. 2014; Poppel et al. 2024 (FlashRNN), section 3 (heads).
 *
 * Shapes: wx is [b] t 3 h d; gates [b] t 4 h d; y is [b] t h d, r h 3 d d, bias 4 h d; h0 and last_h [s] h d, s being
 * nseq with cu_seqlens, else b; b and s may be left out. The last dimension is contiguous, leading strides are free.
 * Types: wx, r, bias, y and gates are f32, bf16 or f16, the same; start and last states f32, cu_seqlens i32. States and
 * sums are f32, and rounded for outputs alone.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: what roundings of f32 make of each step, carried through the recurrence: d + 4 of each product of r and
 * h, of sigmoid and tanh 12; spec/recurrent/cells.h. It grows with the steps as far as r lets errors grow.
 * Inf times a subnormal may be anything.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output that overlaps another
 * tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gru(trine_queue *queue, const trine_gru_args *args);

typedef struct trine_gru_backward_args {
    size_t struct_size;             /* sizeof(trine_gru_backward_args) */
    const trine_tensor *dy;         /* in [b] t h d */
    const trine_tensor *gates;      /* in [b] t 4 h d: as the forward wrote them, as all that it saved */
    const trine_tensor *y;          /* in [b] t h d */
    const trine_tensor *r;          /* in h 3 d d */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1 */
    const trine_tensor *h0;         /* in, optional [s] h d, f32 */
    const trine_tensor *dlast_h;    /* in, optional [s] h d, f32 */
    const trine_tensor *dwx;        /* out [b] t 3 h d */
    const trine_tensor *dr;         /* out h 3 d d */
    const trine_tensor *dbias;      /* out, optional 4 h d */
    const trine_tensor *dh0;        /* out, optional [s] h d, f32 */
} trine_gru_backward_args;

/* Gradient of trine_gru(), from what that saved.
 *
 *     dh    = dy[t] + z[t+1] dh[t+1] + r[r]' dg[t+1,r] + r[z]' dg[t+1,z] + r[n]' da[t+1],  at the last step with
 *             dlast_h in the place of what follows
 *     dg[z] = dh (h[t-1] - n) z (1-z),  dg[n] = dh (1-z) (1-n^2),  da = dg[n] r,  dg[r] = dg[n] a r (1-r),  dwx = dg
 *     dr    = sum over t of dg[r], dg[z] and da times h[t-1]',  dbias = sum over t of dg and da
 *
 * r, z and n are the gates' sigmoids and tanh, h[t-1] is y, which the forward rounded, or h0, or 0. dh0 is what the
 * step before the first would have for dh but for dy. All else is as in trine_lstm_backward().
 *
 * Source: the derivative of trine_gru()'s formula.
 *
 * Shapes: dy, y are [b] t h d, gates [b] t 4 h d, dwx [b] t 3 h d, r and dr h 3 d d, dbias 4 h d; states and their
 * gradients [s] h d, as in trine_gru(). dh0 asks for h0.
 * Types: dy, y, gates, r, dwx, dr and dbias are f32, bf16 or f16, the same; states and their gradients f32, cu_seqlens
 * i32. Accumulation is f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of the forward, of sums of |dz| |r| from each step to the next; of dr and dbias, as many roundings of
 * their terms as there are steps; spec/recurrent/cells.h. Inf times a subnormal may be anything.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; dh0 without h0; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output that
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gru_backward(trine_queue *queue, const trine_gru_backward_args *args);

typedef struct trine_slstm_args {
    size_t struct_size;             /* sizeof(trine_slstm_args) */
    const trine_tensor *wx;         /* in [b] t 4 h d: products of the inputs */
    const trine_tensor *r;          /* in h 4 d d: recurrent weights */
    const trine_tensor *bias;       /* in, optional 4 h d */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then b must be 1 */
    const trine_tensor *h0;         /* in, optional [s] h d, f32: start states */
    const trine_tensor *c0;         /* in, optional [s] h d, f32 */
    const trine_tensor *n0;         /* in, optional [s] h d, f32 */
    const trine_tensor *m0;         /* in, optional [s] h d, f32 */
    const trine_tensor *y;          /* out [b] t h d: the states h */
    const trine_tensor *gates;      /* out, optional [b] t 4 h d; what the gradient needs */
    const trine_tensor *c;          /* out, optional [b] t h d, f32; likewise */
    const trine_tensor *n;          /* out, optional [b] t h d, f32; likewise */
    const trine_tensor *m;          /* out, optional [b] t h d, f32; likewise */
    const trine_tensor *last_h;     /* out, optional [s] h d, f32: states after the last step */
    const trine_tensor *last_c;     /* out, optional [s] h d, f32 */
    const trine_tensor *last_n;     /* out, optional [s] h d, f32 */
    const trine_tensor *last_m;     /* out, optional [s] h d, f32 */
} trine_slstm_args;

/* Long short-term memory with exponential input gates (sLSTM) along time, head by head.
 *
 *     g[q]   = wx[t,q] + r[q] y[t-1] + bias[q],  q = i, f, z, o
 *     l      = log sigmoid(g[f]) + m[t-1],  m[t] = max(g[i], l)
 *     c[t]   = exp(l - m[t]) c[t-1] + exp(g[i] - m[t]) tanh(g[z])
 *     n[t]   = exp(l - m[t]) n[t-1] + exp(g[i] - m[t])
 *     y[t]   = sigmoid(g[o]) c[t] / n[t]
 *
 * m keeps the exponentials from overflowing, and nothing else: what it is does not change y. Where n[t-1] is 0, as it
 * is without start states, nothing was kept: m[t] is g[i], and c[t-1] counts as 0. That is for each element by itself.
 * From then on n is at least 1, so that the paper's max(n, 1) is left out; n0 must be 0 or positive. c0, n0 and m0 are
 * given together, y[-1] is h0. Heads and packed sequences are as in trine_lstm().
 *
 * gates are g, rounded to the type of y; gates, c, n, m and y are what trine_slstm_backward() needs.
 *
 * Source: Beck et al. 2024 (xLSTM), section 2.2; Poppel et al. 2024 (FlashRNN), section 3 (heads).
 *
 * Shapes: wx and gates are [b] t 4 h d; y and c, n, m are [b] t h d, r h 4 d d, bias 4 h d; h0 and last_h, c0 and
 * last_c, n0 and last_n, m0 and last_m [s] h d, s being nseq with cu_seqlens, else b; b and s may be left out. The last
 * dimension is contiguous, leading strides are free.
 * Types: wx, r, bias, y and gates are f32, bf16 or f16, the same; start and last states, c, n, m f32, cu_seqlens i32.
 * States and sums are f32, and rounded for outputs alone.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: what roundings of f32 make of each step, carried through the recurrence: d + 4 of each product of r and
 * h, of sigmoid and tanh 12; spec/recurrent/cells.h. It grows with the steps as far as r lets errors grow.
 * Inf times a subnormal may be anything.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; c0, n0 or m0 without the others; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an
 * output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict
 * queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_slstm(trine_queue *queue, const trine_slstm_args *args);

typedef struct trine_slstm_backward_args {
    size_t struct_size;             /* sizeof(trine_slstm_backward_args) */
    const trine_tensor *dy;         /* in [b] t h d */
    const trine_tensor *gates;      /* in [b] t 4 h d: as the forward wrote them, as all that it saved */
    const trine_tensor *c;          /* in [b] t h d, f32 */
    const trine_tensor *n;          /* in [b] t h d, f32 */
    const trine_tensor *m;          /* in [b] t h d, f32 */
    const trine_tensor *y;          /* in [b] t h d */
    const trine_tensor *r;          /* in h 4 d d */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1 */
    const trine_tensor *h0;         /* in, optional [s] h d, f32 */
    const trine_tensor *c0;         /* in, optional [s] h d, f32 */
    const trine_tensor *n0;         /* in, optional [s] h d, f32 */
    const trine_tensor *m0;         /* in, optional [s] h d, f32 */
    const trine_tensor *dlast_h;    /* in, optional [s] h d, f32 */
    const trine_tensor *dwx;        /* out [b] t 4 h d */
    const trine_tensor *dr;         /* out h 4 d d */
    const trine_tensor *dbias;      /* out, optional 4 h d */
    const trine_tensor *dh0;        /* out, optional [s] h d, f32 */
} trine_slstm_backward_args;

/* Gradient of trine_slstm(), from what that saved.
 *
 *     dh    = dy[t] + sum_q r[q]' dg[t+1,q],  at the last step dy + dlast_h; o is sigmoid(g[o]), z tanh(g[z])
 *     dc[t] = dh o / n + f[t+1] dc[t+1],  dn[t] = -dh o c / n^2 + f[t+1] dn[t+1],  f = exp(l - m), i = exp(g[i] - m)
 *     dg    = (dc z + dn) i, (dc c[t-1] + dn n[t-1]) f sigmoid(-g[f]), dc i (1-z^2), dh (c/n) o (1-o),  dwx = dg
 *
 * m is a constant, since y does not depend on it; so are c0, n0 and m0, and last_c, last_n and last_m have no part in
 * the gradient. f is 0 where n[t-1] is. All else is as in trine_lstm_backward().
 *
 * Source: the derivative of trine_slstm()'s formula.
 *
 * Shapes: dy, y, c, n, m are [b] t h d, gates [b] t 4 h d, dwx [b] t 4 h d, r and dr h 4 d d, dbias 4 h d; states and
 * their gradients [s] h d, as in trine_slstm(). dh0 asks for h0.
 * Types: dy, y, gates, r, dwx, dr and dbias are f32, bf16 or f16, the same; c, n, m, states and their gradients f32,
 * cu_seqlens i32. Accumulation is f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of the forward, of sums of |dz| |r| from each step to the next; of dr and dbias, as many roundings of
 * their terms as there are steps; spec/recurrent/cells.h. Inf times a subnormal may be anything.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; dh0 without h0; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output that
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_slstm_backward(trine_queue *queue, const trine_slstm_backward_args *args);

typedef struct trine_elman_args {
    size_t struct_size;             /* sizeof(trine_elman_args) */
    const trine_tensor *wx;         /* in [b] t h d: products of the inputs */
    const trine_tensor *r;          /* in h d d: recurrent weights */
    const trine_tensor *bias;       /* in, optional h d */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1: where packed sequences start; then b must be 1 */
    const trine_tensor *h0;         /* in, optional [s] h d, f32: start states */
    const trine_tensor *y;          /* out [b] t h d: the states h */
    const trine_tensor *gates;      /* out, optional [b] t h d; what the gradient needs */
    const trine_tensor *last_h;     /* out, optional [s] h d, f32: states after the last step */
} trine_elman_args;

/* Simple recurrent network along time, head by head.
 *
 *     g      = wx[t] + r h[t-1] + bias
 *     h[t]   = tanh(g),  y = h
 *
 * With one head it is torch.nn.RNN. Heads, start states and packed sequences are as in trine_lstm(). gates are g,
 * rounded to the type of y; gates and y are what trine_elman_backward() needs.
 *
 * Source: Elman 1990; Poppel et al. 2024 (FlashRNN), section 3 (heads).
 *
 * Shapes: wx and gates are [b] t h d; y is [b] t h d, r h d d, bias h d; h0 and last_h [s] h d, s being nseq with
 * cu_seqlens, else b; b and s may be left out. The last dimension is contiguous, leading strides are free.
 * Types: wx, r, bias, y and gates are f32, bf16 or f16, the same; start and last states f32, cu_seqlens i32. States and
 * sums are f32, and rounded for outputs alone.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: what roundings of f32 make of each step, carried through the recurrence: d + 4 of each product of r and
 * h, of sigmoid and tanh 12; spec/recurrent/cells.h. It grows with the steps as far as r lets errors grow.
 * Inf times a subnormal may be anything.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output that overlaps another
 * tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_elman(trine_queue *queue, const trine_elman_args *args);

typedef struct trine_elman_backward_args {
    size_t struct_size;             /* sizeof(trine_elman_backward_args) */
    const trine_tensor *dy;         /* in [b] t h d */
    const trine_tensor *gates;      /* in [b] t h d: as the forward wrote them, as all that it saved */
    const trine_tensor *y;          /* in [b] t h d */
    const trine_tensor *r;          /* in h d d */
    const trine_tensor *cu_seqlens; /* in, optional nseq+1 */
    const trine_tensor *h0;         /* in, optional [s] h d, f32 */
    const trine_tensor *dlast_h;    /* in, optional [s] h d, f32 */
    const trine_tensor *dwx;        /* out [b] t h d */
    const trine_tensor *dr;         /* out h d d */
    const trine_tensor *dbias;      /* out, optional h d */
    const trine_tensor *dh0;        /* out, optional [s] h d, f32 */
} trine_elman_backward_args;

/* Gradient of trine_elman(), from what that saved.
 *
 *     dh  = dy[t] + r' dg[t+1],  at the last step dy + dlast_h
 *     dg  = dh (1 - tanh(g)^2),  dwx = dg
 *     dr  = sum over t of dg[t] h[t-1]',  dbias = sum over t of dg[t],  dh0 = r' dg[0]
 *
 * All else is as in trine_lstm_backward().
 *
 * Source: the derivative of trine_elman()'s formula.
 *
 * Shapes: dy, y are [b] t h d, gates [b] t h d, dwx [b] t h d, r and dr h d d, dbias h d; states and their gradients
 * [s] h d, as in trine_elman(). dh0 asks for h0.
 * Types: dy, y, gates, r, dwx, dr and dbias are f32, bf16 or f16, the same; states and their gradients f32, cu_seqlens
 * i32. Accumulation is f32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: as of the forward, of sums of |dz| |r| from each step to the next; of dr and dbias, as many roundings of
 * their terms as there are steps; spec/recurrent/cells.h. Inf times a subnormal may be anything.
 * Deterministic: the same bits on the same device for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; dh0 without h0; cu_seqlens that do not ascend from 0 to at most t, on devices: all is NaN; an output that
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_elman_backward(trine_queue *queue, const trine_elman_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
