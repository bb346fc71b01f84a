/* SPDX-License-Identifier: Apache-2.0 */
/* Strided blocks, as MPI's datatypes describe them: gathered to a message, and scattered from one. */
#ifndef TRINE_STRIDED_H
#define TRINE_STRIDED_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_pack_strided_args {
    size_t struct_size;         /* sizeof(trine_pack_strided_args) */
    const trine_tensor *x;      /* in n */
    const trine_tensor *packed; /* out [o] [k] [j] [i] m: blocks of m elements, i of them in a row, and so on */
    int64_t start;              /* place of the first element in x */
    int64_t stride_i;           /* elements of x from one block to the next */
    int64_t stride_j;           /* from one row of blocks to the next */
    int64_t stride_k;           /* from one plane of rows to the next */
    int64_t extent;             /* from one object to the next */
} trine_pack_strided_args;

/* Gathers strided blocks of x, one after the other.
 *
 *     packed[o,k,j,i,m] = x[start + o extent + k stride_k + j stride_j + i stride_i + m]
 *
 * That is what MPI_Pack() makes of o objects of a datatype with that extent: with one dimension MPI_Type_contiguous(),
 * with two MPI_Type_vector(i, m, stride_i), with three and four vectors of vectors, or a subarray of three dimensions;
 * with the type u8 counts and strides are bytes, as those of the MPI_Type_create_hvector() family. Dimensions that are
 * missing in front count 1. Strides may be 0 or negative. Levels that are without gaps in both are one to the kernels,
 * so that a layout costs the same however it is written.
 *
 * A place outside [0, n) is not read and gives 0: beyond the edge of a grid nothing is.
 *
 * Source: Pearson et al. 2020 (TEMPI: canonical forms of datatypes); MPI 4.1, section 5.
 *
 * Shapes: x is n, and contiguous; packed is [o] [k] [j] [i] m, the last dimension contiguous, leading strides free.
 * Types: x and packed are u8, i8, i16, i32, i64, u32, f16, bf16, f32 or f64, the same.
 * Parameters: start, strides and extent are within 2^50 in size, in elements.
 * Aliasing: packed may not overlap x.
 *
 * Error bound: exact: bits are copied.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; a
 * parameter out of range; packed overlaps x), TRINE_ERR_UNSUPPORTED (a place beyond 2^61 in size, in bytes),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_pack_strided(trine_queue *queue, const trine_pack_strided_args *args);

typedef struct trine_unpack_strided_args {
    size_t struct_size;         /* sizeof(trine_unpack_strided_args) */
    const trine_tensor *packed; /* in [o] [k] [j] [i] m */
    const trine_tensor *x;      /* in and out n: what no block names stays */
    int64_t start;              /* place of the first element in x */
    int64_t stride_i;           /* elements of x from one block to the next */
    int64_t stride_j;           /* from one row of blocks to the next */
    int64_t stride_k;           /* from one plane of rows to the next */
    int64_t extent;             /* from one object to the next */
} trine_unpack_strided_args;

/* Scatters packed elements to strided blocks of x: trine_pack_strided() backwards.
 *
 *     x[start + o extent + k stride_k + j stride_j + i stride_i + m] = packed[o,k,j,i,m]
 *
 * A place outside [0, n) is passed over. Of elements that have the same place the last one of packed is written, in its
 * order; layouts in which blocks may lie over each other, strides not ascending beyond what is inside of them, take
 * longer.
 *
 * Source: Pearson et al. 2020 (TEMPI: canonical forms of datatypes); MPI 4.1, section 5.
 *
 * Shapes: x is n, and contiguous; packed is [o] [k] [j] [i] m, the last dimension contiguous, leading strides free.
 * Types: x and packed are u8, i8, i16, i32, i64, u32, f16, bf16, f32 or f64, the same.
 * Parameters: start, strides and extent are within 2^50 in size, in elements.
 * Aliasing: x may not overlap packed.
 *
 * Error bound: exact: bits are copied.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; a
 * parameter out of range; x overlaps packed), TRINE_ERR_UNSUPPORTED (a place beyond 2^61 in size, in bytes),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_unpack_strided(trine_queue *queue, const trine_unpack_strided_args *args);

#ifdef __cplusplus
}
#endif

#endif
