/* SPDX-License-Identifier: Apache-2.0 */
/* Collective ops: what the ranks of a group compute together. group.h opens groups. A family has one header; most
 * of this one is descriptions. */
#ifndef TRINE_COMM_H
#define TRINE_COMM_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is made of the ranks' elements. */
enum {
    TRINE_RANKS_SUM = 0, /* their sum, in the order of ranks */
    TRINE_RANKS_MAX = 1  /* the largest; NaN if one is */
};

typedef struct trine_all_reduce_args {
    size_t struct_size;    /* sizeof(trine_all_reduce_args) */
    trine_comm *comm;      /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x; /* in n: this rank's elements */
    const trine_tensor *y; /* out n: those of all ranks together; may be x */
    int32_t kind;          /* TRINE_RANKS_* */
} trine_all_reduce_args;

/* Adds up the tensors of all ranks, or takes the largest, element by element; every rank has the result.
 *
 *     y_r[j] = ((x_0[j] + x_1[j]) + x_2[j]) + ..., or max over i of x_i[j], for every rank r
 *
 * The sum begins with rank 0 and goes by the order of ranks, whatever the size, the kernel or the machine: in f32, or
 * in f64 if T is, rounded to T at the end. So all ranks have the same bits, in every run.
 *
 * Source: MPI 4.1, section 6.9.6, MPI_Allreduce.
 *
 * Shapes: of each rank x and y are n, and contiguous. A tensor of another shape is passed as one row.
 * Types: x and y are f32, bf16, f16 or f64, the same. Accumulation is f32, or f64 if T is f64.
 * Parameters: kind is TRINE_RANKS_SUM or TRINE_RANKS_MAX.
 * Aliasing: y may be x, the very same view. All other overlap is an error.
 *
 * Error bound: ranks 2^-24 sum_i |x_i| (2^-53 for f64) before the rounding to T; max is exact.
 * Deterministic: the same bits for any number of threads, and on all ranks.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; comm is closed or of another device; rank, sizes, strides or element
 * types that the above does not admit; kind out of range; y overlaps x but is not the same view), TRINE_ERR_COMM (what
 * another rank did, or did not do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_reduce(trine_queue *queue, const trine_all_reduce_args *args);

typedef struct trine_reduce_scatter_args {
    size_t struct_size;    /* sizeof(trine_reduce_scatter_args) */
    trine_comm *comm;      /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x; /* in ranks n: a row for each rank */
    const trine_tensor *y; /* out n: the rows for this rank together */
    int32_t kind;          /* TRINE_RANKS_* */
} trine_reduce_scatter_args;

/* Adds up what all ranks have for a rank, or takes the largest; each rank has the result for itself.
 *
 *     y_r[j] = ((x_0[r,j] + x_1[r,j]) + x_2[r,j]) + ..., or max over i of x_i[r,j]
 *
 * The sum begins with rank 0 and goes by the order of ranks, in f32, or in f64 if T is, rounded to T at the end: the
 * bits of all_reduce.
 *
 * Source: MPI 4.1, section 6.10.1, MPI_Reduce_scatter_block.
 *
 * Shapes: of each rank x is ranks n and y n; the last dimension is contiguous, the other stride of x is free.
 * Types: x and y are f32, bf16, f16 or f64, the same. Accumulation is f32, or f64 if T is f64.
 * Parameters: kind is TRINE_RANKS_SUM or TRINE_RANKS_MAX.
 * Aliasing: y may not overlap x.
 *
 * Error bound: ranks 2^-24 sum_i |x_i| (2^-53 for f64) before the rounding to T; max is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; comm is closed or of another device; rank, sizes, strides or element
 * types that the above does not admit; kind out of range; y overlaps x), TRINE_ERR_COMM (what another rank did, or did
 * not do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_reduce_scatter(trine_queue *queue, const trine_reduce_scatter_args *args);

typedef struct trine_all_gather_args {
    size_t struct_size;    /* sizeof(trine_all_gather_args) */
    trine_comm *comm;      /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x; /* in n: this rank's elements */
    const trine_tensor *y; /* out ranks n: those of each rank, in their order */
} trine_all_gather_args;

/* Gives every rank the tensors of all.
 *
 *     y_r[i,j] = x_i[j] for every rank r
 *
 * Source: MPI 4.1, section 6.7, MPI_Allgather.
 *
 * Shapes: of each rank x is n and y ranks n; the last dimension is contiguous, the other stride of y is free.
 * Types: x and y are of any one type; bits are copied.
 * Aliasing: y may not overlap x.
 *
 * Error bound: exact.
 * Deterministic: yes.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; comm is closed or of another device; rank, sizes, strides or element
 * types that the above does not admit; y overlaps x or itself), TRINE_ERR_COMM (what another rank did, or did not do:
 * trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_gather(trine_queue *queue, const trine_all_gather_args *args);

typedef struct trine_broadcast_args {
    size_t struct_size;    /* sizeof(trine_broadcast_args) */
    trine_comm *comm;      /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x; /* in n: what root's holds; those of other ranks are not read */
    const trine_tensor *y; /* out n: root's elements; may be x */
    int32_t root;          /* the rank whose elements all get */
} trine_broadcast_args;

/* Gives every rank the tensor of one.
 *
 *     y_r[j] = x_root[j] for every rank r
 *
 * With y the same view as x the elements of root stay as they are, and those of the other ranks become root's.
 *
 * Source: MPI 4.1, section 6.4, MPI_Bcast.
 *
 * Shapes: of each rank x and y are n, and contiguous. A tensor of another shape is passed as one row.
 * Types: x and y are of any one type; bits are copied.
 * Parameters: 0 <= root < ranks, the same on all ranks.
 * Aliasing: y may be x, the very same view. All other overlap is an error.
 *
 * Error bound: exact.
 * Deterministic: yes.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; comm is closed or of another device; rank, sizes, strides or element
 * types that the above does not admit; root is no rank; y overlaps x but is not the same view), TRINE_ERR_COMM (what
 * another rank did, or did not do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_broadcast(trine_queue *queue, const trine_broadcast_args *args);

typedef struct trine_all_to_all_args {
    size_t struct_size;    /* sizeof(trine_all_to_all_args) */
    trine_comm *comm;      /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x; /* in ranks n: a row for each rank */
    const trine_tensor *y; /* out ranks n: the row for this rank of each, in their order */
} trine_all_to_all_args;

/* Gives each rank the rows that the others have for it.
 *
 *     y_r[i,j] = x_i[r,j]
 *
 * Source: MPI 4.1, section 6.8, MPI_Alltoall.
 *
 * Shapes: of each rank x and y are ranks n; the last dimension is contiguous, the other stride is free.
 * Types: x and y are of any one type; bits are copied.
 * Aliasing: y may not overlap x.
 *
 * Error bound: exact.
 * Deterministic: yes.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; comm is closed or of another device; rank, sizes, strides or element
 * types that the above does not admit; y overlaps x or itself), TRINE_ERR_COMM (what another rank did, or did not do:
 * trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_to_all(trine_queue *queue, const trine_all_to_all_args *args);

typedef struct trine_moe_dispatch_args {
    size_t struct_size;          /* sizeof(trine_moe_dispatch_args) */
    trine_comm *comm;            /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x;       /* in t n: this rank's tokens */
    const trine_tensor *experts; /* in t k, i32 or i64: of all ranks' experts those of each token */
    const trine_tensor *y;       /* out p n: the tokens of this rank's experts */
    const trine_tensor *counts;  /* out e, i32 */
    const trine_tensor *offsets; /* out e+1, i32 */
    const trine_tensor *places;  /* out t k, i32 */
    const trine_tensor *needed;  /* out, optional ranks, i32 */
    int64_t capacity;            /* of an expert, which takes no more; 0: there is none */
} trine_moe_dispatch_args;

/* Sends the tokens of all ranks to the ranks of their experts, sorted by expert: what grouped_matmul works on, and how
 * its rows find back. It is moe_align, with no padding, over the slots of all ranks, and the rows are sent.
 *
 * Each rank has e experts: rank r has those from r e on, and ranks e - 1 is the last. The slots of an expert are
 * numbered in the order of ranks, then of tokens, then of a token's choices, and those up to its capacity are taken. In
 * numbers, for experts j of rank r, j = 0 .. e - 1:
 *
 *     counts_r[j]    = how many slots of all ranks name expert r e + j, those that are dropped included
 *     start[0]       = 0,  start[j+1] = start[j] + min(counts_r[j], capacity)
 *     needed[r]      = start[e], on every rank
 *     offsets_r[j]   = min(start[j], p)
 *     y_r[place]     = x_s[i] of rank s, for the slot (i,a) of rank s that stands there; 0 from offsets_r[e] on
 *     places_s[i,a]  = r p + place: among all ranks' rows of y; -1 if the slot is dropped
 *
 * y has room for p rows on each rank, which tells how many a rank takes: where needed is more, the slots whose place
 * would be p or more are dropped, those of the last experts first. So needed says whether all were taken, and how many
 * rows would do. With p = ranks t k, or e capacity if that is less, there is always room. A slot whose expert is below
 * 0, or ranks e and more, is one that nobody takes: its place is -1. A rank with fewer tokens than t has such experts
 * in the rows that are left.
 *
 * What the experts make of y goes back by moe_collect with the same places. Gradients are of these two ops:
 * that of x is moe_collect of dy with no weights.
 *
 * Source: Lepikhin et al. 2021 (GShard); Fedus et al. 2022 (capacity).
 *
 * Shapes: of each rank x is t n, experts and places are t k, y is p n, counts e, offsets e+1, needed ranks; all sizes
 * are the same on all ranks. The last dimension is contiguous, leading strides are free.
 * Types: x and y are of any one type, and bits are copied; experts are i32 or i64, all others i32.
 * Parameters: capacity >= 0.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads, and on every device.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; comm is closed or of another device; rank, sizes, strides,
 * element types or parameters that the above does not admit; an output that overlaps another tensor), TRINE_ERR_COMM
 * (what another rank did, or did not do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (ranks t k, ranks p or ranks e is
 * more than 2^31 - 1; the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_moe_dispatch(trine_queue *queue, const trine_moe_dispatch_args *args);

typedef struct trine_moe_collect_args {
    size_t struct_size;          /* sizeof(trine_moe_collect_args) */
    trine_comm *comm;            /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x;       /* in p n: what this rank's experts made of their tokens */
    const trine_tensor *places;  /* in t k, i32: among all ranks' rows of x those of each token */
    const trine_tensor *weights; /* in, optional t k, f32 */
    const trine_tensor *y;       /* out t n: this rank's tokens */
} trine_moe_collect_args;

/* Brings back what the experts of all ranks made of each token, and adds it up: moe_combine over ranks.
 *
 *     y_s[i,j] = sum over a of weights_s[i,a] x_r[q,j],  places_s[i,a] = r p + q
 *
 * A slot whose place is below 0, or ranks p and more, adds nothing: its expert dropped it. Weights that are absent are
 * 1. A token without a slot is 0. The bits are those of moe_combine on one rank with all rows.
 *
 * Gradients, with g = moe_dispatch of dy by the same experts and capacity, and v of weights, seen as t k tokens of one
 * element with one choice each: dx has the rows of g times v. The rows' sums of g times x, one element each, are
 * dweights as moe_collect with no weights has them, by places seen as (t k) 1.
 *
 * Source: Lepikhin et al. 2021 (GShard).
 *
 * Shapes: of each rank x is p n, places and weights are t k, y is t n; all sizes are the same on all ranks. The last
 * dimension is contiguous, leading strides are free.
 * Types: x is f32, bf16 or f16; y of the same type, or f32; places i32, weights f32. Sums are in f32, in the order of
 * slots, and rounded once.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound, besides the output's own rounding: k + 1 in units of 2^-24, of the sum of absolute values.
 * Deterministic: the same bits for any number of threads and of ranks.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; comm is closed or of another device; rank, sizes, strides or
 * element types that the above does not admit; an output that overlaps another tensor), TRINE_ERR_COMM (what another
 * rank did, or did not do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (ranks t k or ranks p is more than 2^31 - 1; a
 * token has more slots than a rank's staging has elements; the device has no kernel), TRINE_ERR_WORKSPACE (strict
 * queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_moe_collect(trine_queue *queue, const trine_moe_collect_args *args);

typedef struct trine_matmul_reduce_scatter_args {
    size_t struct_size;    /* sizeof(trine_matmul_reduce_scatter_args) */
    trine_comm *comm;      /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *a; /* in ranks m k: rows for each rank, this rank's part of k */
    const trine_tensor *b; /* in k n */
    const trine_tensor *d; /* out m n: the rows for this rank, of all ranks' products together */
} trine_matmul_reduce_scatter_args;

/* Adds up all ranks' matrix products; each rank has its part of the rows: a row-parallel linear layer with sequence
 * parallelism.
 *
 *     d_r[i,j] = (P_0[r,i,j] + P_1[r,i,j]) + ...,  P_s[r,i,j] = sum_p a_s[r,i,p] b_s[p,j]
 *
 * The products are trine_matmul()'s in f32, and are not rounded to T before they are added up. The sum begins with rank
 * 0 and goes by the order of ranks in f32, rounded to d's type at the end. So the result does not depend on how ranks
 * are connected.
 *
 * Source: Korthikanti et al. 2022, section 4.2.2; Chang et al. 2024 (Flux).
 *
 * Shapes: of each rank a is ranks m k, b k n and d m n. A matrix of ranks m rows is such an a, as a view. Any size may
 * be 0; k = 0 gives 0.
 * Strides: in a and b either of the last two dimensions is contiguous, in d the last. All other strides are free.
 * Types: a and b are f32, bf16 or f16, the same; d has their type, or is f32. Accumulation is f32.
 * Aliasing: d may not overlap a or b.
 *
 * Error bound: |d - d64| <= u(d) |d64| + (k + ranks + 4) 2^-24 sum_s sum_p |a_s b_s|, the sum counting 2.25 times for
 * bf16 and f16; spec/comm/products.h. Products with a subnormal bf16 may be taken for zero.
 * Deterministic: the same bits for any number of threads; on devices within the bound others for another staging_bytes,
 * since large products go in pieces.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; comm is closed or of another device; rank, sizes, strides or element
 * types that the above does not admit; d overlaps another tensor), TRINE_ERR_COMM (what another rank did, or did not
 * do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul_reduce_scatter(trine_queue *queue, const trine_matmul_reduce_scatter_args *args);

typedef struct trine_matmul_all_reduce_args {
    size_t struct_size;    /* sizeof(trine_matmul_all_reduce_args) */
    trine_comm *comm;      /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *a; /* in m k: this rank's part of k */
    const trine_tensor *b; /* in k n */
    const trine_tensor *d; /* out m n: all ranks' products together */
} trine_matmul_all_reduce_args;

/* Adds up all ranks' matrix products; every rank has the result: a row-parallel linear layer.
 *
 *     d_r[i,j] = (P_0[i,j] + P_1[i,j]) + ...,  P_s[i,j] = sum_p a_s[i,p] b_s[p,j], for every rank r
 *
 * The products are trine_matmul()'s in f32, and are not rounded to T before they are added up. The sum begins with rank
 * 0 and goes by the order of ranks in f32, rounded to d's type at the end. So all ranks have the same bits, and the
 * result does not depend on how they are connected.
 *
 * Source: Shoeybi et al. 2019, section 3.
 *
 * Shapes: of each rank a is m k, b k n and d m n. Any size may be 0; k = 0 gives 0.
 * Strides: in a and b either dimension is contiguous, in d the last. All other strides are free.
 * Types: a and b are f32, bf16 or f16, the same; d has their type, or is f32. Accumulation is f32.
 * Aliasing: d may not overlap a or b.
 *
 * Error bound: |d - d64| <= u(d) |d64| + (k + ranks + 4) 2^-24 sum_s sum_p |a_s b_s|, the sum counting 2.25 times for
 * bf16 and f16; spec/comm/products.h. Products with a subnormal bf16 may be taken for zero.
 * Deterministic: the same bits for any number of threads, and on all ranks; on devices within the bound others for
 * another staging_bytes, since large products go in pieces.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; comm is closed or of another device; rank, sizes, strides or element
 * types that the above does not admit; d overlaps another tensor), TRINE_ERR_COMM (what another rank did, or did not
 * do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_matmul_all_reduce(trine_queue *queue, const trine_matmul_all_reduce_args *args);

typedef struct trine_all_gather_matmul_args {
    size_t struct_size;           /* sizeof(trine_all_gather_matmul_args) */
    trine_comm *comm;             /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *a;        /* in m k: this rank's rows */
    const trine_tensor *b;        /* in k n: this rank's columns of the whole */
    const trine_tensor *d;        /* out ranks m n: the rows of each rank by b */
    const trine_tensor *gathered; /* out, optional ranks m k: the rows of each rank, which a gradient needs */
} trine_all_gather_matmul_args;

/* Multiplies the rows of all ranks by this rank's matrix: a column-parallel linear layer with sequence parallelism.
 *
 *     d_r[s,i,j] = sum_p a_s[i,p] b_r[p,j],  gathered_r[s,i,p] = a_s[i,p]
 *
 * Source: Korthikanti et al. 2022, section 4.2.2; Chang et al. 2024 (Flux).
 *
 * Shapes: of each rank a is m k, b k n, d ranks m n and gathered ranks m k: as views, matrices of ranks m rows. Any
 * size may be 0; k = 0 gives 0.
 * Strides: in b either dimension is contiguous, in the others the last. All other strides are free. Without gathered
 * the rows of all ranks are in the workspace, or in the group's memory.
 * Types: a, b and gathered are f32, bf16 or f16, the same; d has their type, or is f32. Accumulation is f32, with one
 * rounding at the end; gathered has the bits of a.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: |d - d64| <= u(d) |d64| + (k + 4) 2^-24 sum_p |a b|, the sum counting 2.25 times for bf16 and f16, as in
 * trine_matmul(). Products with a subnormal bf16 may be taken for zero. gathered is exact.
 * Deterministic: the same bits for any number of threads; on devices within the bound others for another staging_bytes,
 * since large products go in pieces.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor other than gathered is NULL; comm is closed or of another device; rank, sizes,
 * strides or element types that the above does not admit; an output overlaps another tensor, or itself), TRINE_ERR_COMM
 * (what another rank did, or did not do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_gather_matmul(trine_queue *queue, const trine_all_gather_matmul_args *args);

typedef struct trine_all_reduce_rms_norm_args {
    size_t struct_size;               /* sizeof(trine_all_reduce_rms_norm_args) */
    trine_comm *comm;                 /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x;            /* in r n: this rank's part of the sum */
    const trine_tensor *weight;       /* in, optional n */
    const trine_tensor *residual;     /* in, optional r n */
    const trine_tensor *y;            /* out r n; may be x */
    const trine_tensor *residual_out; /* out, optional r n: h; may be residual */
    const trine_tensor *rstd;         /* out, optional r */
    float eps;                        /* 0: 1e-6 */
    float weight_offset;              /* added to weight; Gemma has 1 */
    int32_t rounding;                 /* TRINE_ROUND_* */
} trine_all_reduce_rms_norm_args;

/* Root-mean-square normalization of the sum over all ranks and a residual; every rank has all rows. It is what stands
 * between two layers whose weights the ranks share (tensor parallelism), in one call.
 *
 *     h            = ((x_0 + x_1) + x_2) + ... + residual
 *     rstd[i]      = 1/sqrt(mean_j h[i,j]^2 + eps)
 *     y[i,j]       = h[i,j] rstd[i] (weight[j] + weight_offset)
 *     residual_out = h
 *
 * The sum begins with rank 0 and goes by the order of ranks, the residual last, in f32. It is not rounded before y and
 * residual_out are: these are not the bits of trine_all_reduce() followed by trine_rms_norm(), which rounds the sum to
 * T between them. weight and residual are each rank's own: where all ranks have the same, all have the same y.
 *
 * Without weight its factor is 1, whatever weight_offset is. TRINE_ROUND_BEFORE_WEIGHT rounds h rstd to T before it is
 * multiplied.
 *
 * Ranges: as of trine_rms_norm(): h may be of any finite size, and rstd rounds as f32 does. A sum that is beyond f32 on
 * its way gives NaN in its row.
 *
 * Source: Zhang and Sennrich 2019, eq. 4, of what MPI_Allreduce gives (MPI 4.1, section 6.9.6).
 *
 * Shapes: of each rank matrices are r n, their rows contiguous and any distance apart; weight is n, rstd r.
 * Types: x and y are f32, bf16 or f16, the same. residual and residual_out are of that type or f32; so is weight, on
 * its own. rstd is f32. Sums of ranks are f32, statistics no less.
 * Parameters: eps >= 0; 0 means 1e-6, -0.0 zero.
 * Aliasing: y may be x, residual_out may be residual.
 *
 * Error bound: min(n, 256) + n/1024 + 32 in units of 2^-24 of y and rstd, and what h is off by, ranks sum_i |x_i| +
 * |residual| in units of 2^-24: once by itself and once through its row's mean square; spec/comm/all_reduce_rms_norm.c.
 * Deterministic: the same bits for any number of threads, and on all ranks that have the same weight and residual.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; comm is closed or of another device; rank, sizes, strides or
 * element types that the above does not admit; a parameter not finite or outside its range; an output that overlaps
 * another tensor otherwise than said), TRINE_ERR_COMM (what another rank did, or did not do: trine_comm_open()),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_reduce_rms_norm(trine_queue *queue, const trine_all_reduce_rms_norm_args *args);

typedef struct trine_all_to_all_v_args {
    size_t struct_size;           /* sizeof(trine_all_to_all_v_args) */
    trine_comm *comm;             /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x;        /* in m n: rows for rank 0, then those for rank 1, and so on */
    const trine_tensor *counts;   /* in ranks: how many rows each rank gets of these */
    const trine_tensor *y;        /* out capacity n: rows of rank 0, then those of rank 1, and so on; then zeros */
    const trine_tensor *received; /* out, optional ranks: how many rows each rank has for this one */
} trine_all_to_all_v_args;

/* Gives each rank as many rows as the others have for it.
 *
 *     received_r[i] = counts_i[r]
 *     y_r           = the rows of x_i that are for r, of every rank i in order; zeros in the rows after these
 *
 * The counts are data that only the device need have, and so are never an error. One below 0 counts as 0, and one that
 * goes beyond the m rows of x as what is left of them; received tells what was sent. Of more rows than capacity the
 * first ones arrive: received has those of all, so that a sum of it above capacity says how many did not.
 *
 * Source: MPI 4.1, section 6.8, MPI_Alltoallv.
 *
 * Shapes: of each rank x is m n, y capacity n, the same on all ranks; counts and received are ranks. The last dimension
 * is contiguous, other strides are free.
 * Types: x and y are of any one type, whose bits are copied; counts and received i32 or i64, the same.
 * Ranges: counts are from 0 to m, m together, and those for a rank at most capacity, or see above.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: exact.
 * Deterministic: yes.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; comm is closed or of another device; rank, sizes, strides or
 * element types that the above does not admit; an output that overlaps another tensor or itself), TRINE_ERR_COMM (what
 * another rank did, or did not do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_to_all_v(trine_queue *queue, const trine_all_to_all_v_args *args);

/* Codes of 8 bits that elements travel as. */
enum { TRINE_RANKS_I8 = 0, TRINE_RANKS_E4M3 = 1 };

typedef struct trine_all_reduce_quantized_args {
    size_t struct_size;    /* sizeof(trine_all_reduce_quantized_args) */
    trine_comm *comm;      /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x; /* in n: this rank's elements */
    const trine_tensor *y; /* out n: nearly the sum of all ranks' elements; may be x */
    int32_t block;         /* elements with a scale of their own; 0: 128 */
    int32_t codes;         /* TRINE_RANKS_I8 or TRINE_RANKS_E4M3 */
} trine_all_reduce_quantized_args;

/* Adds up the tensors of all ranks, which travel as codes of 8 bits with a scale for each block; every rank has the
 * result.
 *
 *     s   = ((c(x_0) + c(x_1)) + c(x_2)) + ...
 *     y_r = c(s) for every rank r
 *
 * c is what the codes of trine_quantize() stand for. Of each block of elements, the first one from element 0 on and the
 * last one shorter if need be:
 *
 *     scale = max |x| / most,  c(x) = round(x / scale) scale
 *
 * most being 127 of i8 and 448 of e4m3, round to the nearest code, from the middle to the even one. A block of zeros is
 * zeros, and one with NaN or Inf is NaN. So each rank's elements are rounded once on their way to where they are added
 * up, and the sum once on its way back, whatever the algorithm; the sum goes by the order of ranks. Every operation is
 * f32's and rounded; y is rounded to T at the end.
 *
 * Source: Wang et al. 2023 (ZeRO++), section 3.3.
 *
 * Shapes: of each rank x and y are n, and contiguous. A tensor of another shape is passed as one row.
 * Types: x and y are f32, bf16 or f16, the same. Arithmetic is f32, each operation rounded.
 * Parameters: block is from 8 to 1024, codes TRINE_RANKS_I8 or TRINE_RANKS_E4M3.
 * Aliasing: y may be x, the very same view. All other overlap is an error.
 *
 * Error bound: none, y is that of the formula, bit for bit, on every device. From the sum itself it is off by half a
 * step of codes for each rank and one more: with i8 by sum_i max |x_i| / 254 + max |s| / 254, the largest being those
 * of the block; with e4m3 by 2^-4 (sum_i |x_i| + |s|), or 2^-10 of a block's scale where that is more.
 * Deterministic: the same bits for any number of threads, and on all ranks.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; comm is closed or of another device; rank, sizes, strides or element
 * types that the above does not admit; a parameter out of range; y overlaps x but is not the same view), TRINE_ERR_COMM
 * (what another rank did, or did not do: trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_reduce_quantized(trine_queue *queue, const trine_all_reduce_quantized_args *args);

typedef struct trine_all_reduce_norm_clip_args {
    size_t struct_size;                /* sizeof(trine_all_reduce_norm_clip_args) */
    trine_comm *comm;                  /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x;             /* in n: this rank's part of the tensor */
    const trine_tensor *y;             /* out, optional n; may be x */
    const trine_tensor *other_squares; /* in, optional g, f64: sums of squares of what else this rank has */
    const trine_tensor *norm;          /* out, optional [1], f32 */
    const trine_tensor *coefficient;   /* out, optional [1], f32: min(1, max_norm / norm) */
    float max_norm;                    /* > 0; left 0: no limit, coefficient is 1 */
} trine_all_reduce_norm_clip_args;

/* Clipping by the norm of a tensor whose parts the ranks have, as gradients are by ZeRO.
 *
 *     norm        = sqrt(sum_q (sum_i x_q[i]^2 + sum_j other_squares_q[j])),  over all ranks q
 *     coefficient = min(1, max_norm/norm), or 1 if max_norm is left 0
 *     y           = coefficient x
 *
 * All ranks have the same norm and coefficient. Of many tensors a list of trine_global_norm_clip() gives sum_squares of
 * each, all of them elements of one tensor: that is other_squares, and with an x of no elements one call gives the
 * coefficient, by which trine_adamw() then multiplies: its grad_scale.
 *
 * Squares are exact and summed in f64. The coefficient is rounded to f32, then multiplied. What norms of 0, Inf and NaN
 * give is as of trine_global_norm_clip().
 *
 * Source: Pascanu et al. 2013, algorithm 1; Rajbhandari et al. 2020 (ZeRO), section 5.
 *
 * Shapes: of each rank x and y are n, other_squares g, contiguous; the scalars have shape 1. At least one output is
 * needed.
 * Types: x and y are f32, bf16 or f16; other_squares f64; norm and coefficient f32.
 * Parameters: max_norm > 0, or left 0 for no limit. A zero that is meant, -0.0f, is refused: it would make all of y
 * zero.
 * Aliasing: y may be x.
 *
 * Error bound: norm ranks (n + g) + 2, coefficient ranks (n + g) + 4, each times 2^-53 of itself, and one rounding; y
 * 2*2^-24 of itself and one rounding; spec/comm/all_reduce_norm_clip.c.
 * Deterministic: the same bits for any number of threads, and on all ranks.
 *
 * Errors: TRINE_ERR_ARGUMENT (x is NULL or no output is given; comm is closed or of another device; rank, sizes,
 * strides or element types that the above does not admit; max_norm below 0 or not finite; an output overlaps another
 * tensor otherwise than said), TRINE_ERR_COMM (what another rank did, or did not do: trine_comm_open()),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_reduce_norm_clip(trine_queue *queue, const trine_all_reduce_norm_clip_args *args);

typedef struct trine_vocab_parallel_cross_entropy_args {
    size_t struct_size;          /* sizeof(trine_vocab_parallel_cross_entropy_args) */
    trine_comm *comm;            /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *logits;  /* in r v: this rank's part of the classes */
    const trine_tensor *labels;  /* in r: i32 or i64; the same on all ranks */
    const trine_tensor *loss;    /* out r: f32 */
    const trine_tensor *lse;     /* out, optional r: f32 */
    const trine_tensor *dloss;   /* in, optional r: f32; of the gradient; absent: 1 */
    const trine_tensor *dlogits; /* out, optional r v: this rank's part of the gradient; may be logits */
    float label_smoothing;       /* 0 <= label_smoothing < 1 */
    float z_loss;                /* weight of lse^2, >= 0 */
    float logit_scale;           /* 0: 1 */
    int32_t ignore_index_set;    /* 1: ignore_index is read; 0: it is -100 */
    int64_t ignore_index;        /* rows with this label have loss 0 and gradient 0 */
} trine_vocab_parallel_cross_entropy_args;

/* Cross-entropy of logits whose classes are divided among the ranks, as a language model's last product leaves them
 * whose matrix is cut by columns. Rank q of `ranks` has the classes q v to q v + v - 1.
 *
 * With z = logit_scale logits of all ranks, y = labels[i] and e = label_smoothing:
 *
 *     lse[i]         = log sum_c exp(z[i,c]),  over the ranks v classes c of all ranks
 *     loss[i]        = (1-e) (lse[i] - z[i,y]) + (e/(ranks v)) sum_c (lse[i] - z[i,c]) + z_loss lse[i]^2
 *     dlogits_q[i,k] = dloss[i] logit_scale (exp(z[i,c] - lse[i]) (1 + 2 z_loss lse[i]) - (1-e) [c = y] - e/(ranks v)),
 *                      c = q v + k
 *
 * It is trine_cross_entropy() of the rows that the ranks' logits make side by side, without ever having them in one
 * place: of each row a rank tells the others 48 bytes at most. Each rank has the same loss and lse, and its own part of
 * the gradient. dloss is a rank's own, and need not be the others'.
 *
 * All ranks must give the same labels. Where they do not, or a label is out of range, the call fails on the CPU, on all
 * ranks, when it finds out: outputs may have been written in part; on other devices the row's loss and gradient are
 * NaN. What -Inf, Inf and NaN among the logits give, the ignored label, and finite logits of any size are as of
 * trine_cross_entropy().
 *
 * Source: Shoeybi et al. 2019 (Megatron-LM), section 3; Szegedy et al. 2016, section 7 (smoothing).
 *
 * Shapes: of each rank logits and dlogits are r v, the last dimension contiguous, rows with any stride. labels, loss,
 * lse and dloss are r, contiguous. v, the same on all ranks, may be anything: classes that no token has are logits of
 * -Inf, which smoothing would count.
 * Types: logits are f32, bf16 or f16, read exactly and accumulated in f32; dlogits has their type, and of f32 it may
 * also be bf16 or f16. labels are i32 or i64; loss, lse and dloss f32. Outputs are rounded once.
 * Parameters: labels are in [0, ranks v) or the ignored one, which is -100, or ignore_index if ignore_index_set.
 * logit_scale is at most 2^126 in size; 0 means 1, -0.0 zero. dloss is not read where dlogits is absent, nor for
 * ignored rows.
 * Aliasing: dlogits may be logits, the very same view. No output may overlap another tensor otherwise.
 *
 * Error bound: that of trine_cross_entropy() for ranks v classes, and 10*2^-24 of the sum of exponentials for the move
 * to the origin of all ranks; spec/comm/vocab_parallel_cross_entropy.c.
 * Deterministic: the same bits for any number of threads, and on all ranks.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; comm is closed or of another device; rank, sizes, strides or
 * element types that the above does not admit; on the CPU labels out of range, or that differ between ranks, named with
 * their row; label_smoothing outside [0, 1), z_loss below 0, logit_scale beyond 2^126, a parameter not finite; an
 * output overlaps another tensor otherwise than said), TRINE_ERR_COMM (what another rank did, or did not do:
 * trine_comm_open()), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_vocab_parallel_cross_entropy(trine_queue *queue,
                                                          const trine_vocab_parallel_cross_entropy_args *args);

typedef struct trine_adamw_sharded_args {
    size_t struct_size;              /* sizeof(trine_adamw_sharded_args) */
    trine_comm *comm;                /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *param;       /* in and out p: this rank's part of the parameters */
    const trine_tensor *grad;        /* in n: this rank's gradients of all parameters */
    const trine_tensor *m;           /* in and out p */
    const trine_tensor *v;           /* in and out p */
    const trine_tensor *copy;        /* out n: all parameters; of param's type, or bf16 or f16 of one of f32 */
    const trine_tensor *grad_scale;  /* in, optional [1], f32: multiplies the sum of the gradients */
    const trine_tensor *lr_tensor;   /* in, optional [1], f32: in place of lr */
    const trine_tensor *step_tensor; /* in, optional [1], i64: in place of step */
    const trine_tensor *found_inf;   /* in, optional [1], f32: if any rank's is not 0, the step is skipped */
    const trine_tensor *philox;      /* in, optional [2], i64: in place of seed, and added to stream */
    const trine_tensor *norm;        /* out, optional [1], f32: of the summed gradients, before they are clipped */
    float lr;                        /* learning rate, >= 0; 0 where lr_tensor is given */
    float beta1;                     /* 0 <= beta1 < 1; 0: 0.9 */
    float beta2;                     /* 0 <= beta2 < 1; 0: 0.999 */
    float eps;                       /* >= 0; 0: 1e-8 */
    float weight_decay;              /* >= 0 */
    float max_norm;                  /* > 0; left 0: no limit */
    int64_t step;                    /* number of this step, from 1; 0 where step_tensor is given */
    uint64_t seed;                   /* of chance: key of the generator; 0 where philox is given */
    uint64_t stream;                 /* high half of its counter, below 2^56: another for every call */
    int32_t stochastic;              /* 1: a param of bf16 goes up or down by chance */
} trine_adamw_sharded_args;

/* One AdamW step of ranks that have the gradients of all n parameters, each of its own samples, and parts of the
 * optimizer's state: ZeRO's first stage. Rank q of `ranks` has those from q p to q p + p - 1, as far as there are n.
 *
 *     x[j]   = grad_scale (((grad_0[j] + grad_1[j]) + grad_2[j]) + ...)
 *     norm   = sqrt(sum_j x[j]^2)
 *     g      = min(1, max_norm/norm) x, or x if max_norm is left 0
 *     param_q, m_q, v_q: trine_adamw()'s step by g[q p + i]
 *     copy_r[q p + i] = param_q[i],  on every rank r
 *
 * A rank sends and gets as many elements as reduce_scatter and all_gather do, and needs a workspace of p floats. The
 * sum begins with rank 0 and goes by the order of ranks, in f32, whatever the size or the machine, and is not rounded
 * to grad's type; so copy has the same bits on all ranks, in every run. For a mean grad_scale is 1/ranks.
 *
 * copy is param's bits where it has param's type. Else it is rounded from the f32 that param has. In param, m and v
 * what is behind the n parameters stays as it is, on the last ranks.
 *
 * grad_scale, lr_tensor and step_tensor are a rank's own, for its part, and meant to be the same on all. Where
 * found_inf of any rank is not 0, NaN included, the step is skipped on all: param, m and v stay as they are, and copy
 * gets the unchanged parameters. A step_tensor below 1, of any rank, is an error of all on the CPU, before anything is
 * written; on devices it makes that rank's param NaN. What norms of 0, Inf and NaN give is as of
 * trine_global_norm_clip(); all else, stochastic too, as of trine_adamw(). Rank q takes the stream + 2^56 q, and
 * elements are counted from the beginning of its part.
 *
 * The norm is of this call's gradients alone. Where several calls are to have one, trine_reduce_scatter(),
 * trine_all_reduce_norm_clip(), trine_adamw() and trine_all_gather() do the same by steps.
 *
 * Source: Rajbhandari et al. 2020 (ZeRO), section 5.1; Loshchilov and Hutter 2019, algorithm 2.
 *
 * Shapes: of each rank grad and copy are n, param, m and v are p, all contiguous, the scalars 1, philox 2. n and p are
 * the same on all ranks, and n <= ranks p. Vectors are whole, and so accesses wide, where p is a multiple of 8.
 * Types: param and grad are f32, bf16 or f16; m and v both f32 or both bf16; copy has param's type, or is bf16 or f16
 * where that is f32. Arithmetic is f32, with one rounding for each output. step_tensor and philox are i64; grad_scale,
 * lr_tensor, found_inf and norm are f32.
 * Parameters: for a true zero in beta1, beta2 or eps pass -0.0. max_norm > 0, or left 0 for no limit.
 * Aliasing: no tensor may overlap another.
 *
 * Error bound: that of trine_adamw(), of an exact x; where max_norm limits the norm g is off by 2^-24 + (n + 4) 2^-53
 * of itself besides. norm: (n + 2) 2^-53 of itself, and one rounding; spec/comm/adamw_sharded.c.
 * Deterministic: the same bits for any number of threads; copy and norm on all ranks.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; comm is closed or of another device; rank, sizes, strides or
 * element types that the above does not admit; step below 1; a parameter out of range or not finite, or set beside the
 * tensor that stands for it; overlap), TRINE_ERR_COMM (what another rank did, or did not do: trine_comm_open()),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_adamw_sharded(trine_queue *queue, const trine_adamw_sharded_args *args);

typedef struct trine_all_reduce_rms_norm_quantize_args {
    size_t struct_size;               /* sizeof(trine_all_reduce_rms_norm_quantize_args) */
    trine_comm *comm;                 /* this rank's part of the group; NULL: the call is of all ranks */
    const trine_tensor *x;            /* in r k: this rank's rows */
    const trine_tensor *weight;       /* in, optional k */
    const trine_tensor *residual;     /* in, optional r k */
    const trine_tensor *codes;        /* out r k */
    const trine_tensor *scales;       /* out r groups */
    const trine_tensor *y;            /* out, optional r k: what the codes stand for */
    const trine_tensor *residual_out; /* out, optional r k: h; may be residual */
    float eps;                        /* 0: 1e-6 */
    float weight_offset;              /* added to weight; Gemma has 1 */
    int32_t upward;                   /* 1: powers of two are rounded up, so that no number is clamped */
    int32_t powers;                   /* TRINE_POWERS_E8M0 or TRINE_POWERS_ALL */
} trine_all_reduce_rms_norm_quantize_args;

/* Root-mean-square normalization of the sum of all ranks' rows and a residual, as codes of 8 bits, on every rank: what
 * is between a row-parallel linear layer and a quantized one.
 *
 *     h_q[i,j]     = ((x_0[i,j] + x_1[i,j]) + x_2[i,j]) + ... + residual_q[i,j]
 *     y[i,j]       = h[i,j] (weight[j] + weight_offset) / sqrt(mean_j h[i,j]^2 + eps)
 *     scale        = max |y| / most,  over a group of k/groups of a row
 *     codes        = round(clamp(y/scale))
 *     residual_out = h
 *
 * The sum begins with rank 0 and goes by the order of ranks, then comes the residual, in f32, whatever the size or the
 * machine. h is not rounded before it is normalized. All else is told, operation by operation, by
 * trine_rms_norm_quantize(): so all bits are the same on every device, and on all ranks that have the same residual and
 * weight.
 *
 * Source: Zhang and Sennrich 2019, eq. 4, of what MPI_Allreduce gives (MPI 4.1, section 6.9.6); Jacob et al. 2018,
 * section 2.1; Micikevicius et al. 2022 (float8).
 *
 * Shapes: of each rank matrices are r k, scales r groups, weight k. The last dimension is contiguous, leading strides
 * are free. k % groups = 0.
 * Types: x and y are f32, bf16 or f16. residual and residual_out are of the same type or f32; so is weight, on its own.
 * codes are i8, e4m3 or e5m2; scales f32, bf16, f16 or e8m0.
 * Parameters: eps >= 0; 0 means 1e-6, -0.0 zero.
 * Aliasing: residual_out may be residual.
 *
 * Error bound: none, all outputs are those of the formula as told above, bit for bit, on every device.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; comm is closed or of another device; rank, sizes, strides or
 * element types that the above does not admit; a parameter not finite or outside its range; an output that overlaps
 * another tensor otherwise than said), TRINE_ERR_COMM (what another rank did, or did not do: trine_comm_open()),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_all_reduce_rms_norm_quantize(trine_queue *queue,
                                                          const trine_all_reduce_rms_norm_quantize_args *args);

#ifdef __cplusplus
}
#endif

#endif
