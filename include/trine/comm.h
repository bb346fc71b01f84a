/* SPDX-License-Identifier: Apache-2.0 */
/* Collective ops: what the ranks of a group compute together. group.h opens groups. */
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

#ifdef __cplusplus
}
#endif

#endif
