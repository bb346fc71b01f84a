/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding lookup and sums. */
#ifndef TRINE_REDUCE_H
#define TRINE_REDUCE_H

#include <trine/trine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_embedding_args {
    size_t struct_size; /* TRINE_ARGS(embedding) */
    const trine_tensor *table; /* in v n */
    const trine_tensor *ids; /* in t */
    const trine_tensor *y; /* out t n */
} trine_embedding_args;

/* Embedding lookup: gathers rows of a table.
 *
 *     y[i,j] = table[ids[i],j]
 *
 * Shapes: table v n, ids t, y t n. The last dimension is contiguous, leading strides are free.
 * Types: table and y f32, bf16, f16 or f64, the same; ids i32 or i64. Rows are copied.
 * Ranges: 0 <= ids < v.
 * Aliasing: none.
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads.
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above, or if an id is out of range: the message has its
 * place and value. y is untouched.
 * Since 0.1. */
TRINE_API trine_status trine_embedding(trine_queue *queue, const trine_embedding_args *args);

typedef struct trine_embedding_backward_args {
    size_t struct_size; /* TRINE_ARGS(embedding_backward) */
    const trine_tensor *dy; /* in t n */
    const trine_tensor *ids; /* in t */
    const trine_tensor *dtable; /* in and out v n */
    int32_t accumulate; /* 1: add to what dtable holds; 0: overwrite it */
} trine_embedding_backward_args;

/* Gradient of embedding: adds the rows of dy where their ids say.
 *
 *     dtable[k,j] = sum over i with ids[i] = k of dy[i,j];  plus what dtable held, if accumulate
 *
 * Shapes: dy t n, ids t, dtable v n. The last dimension is contiguous, leading strides are free.
 * Types: dy f32, bf16 or f16; dtable f32, or the type of dy; ids i32 or i64. Sums in f32, in the order of i, starting from what dtable
 * held; rounded once.
 * Ranges: 0 <= ids < v. With accumulate, rows that no id names are not written.
 * Aliasing: none.
 * Error bound, besides the output's own rounding: 2 2^-24 c times the sum of the absolute values, c being how often the row is named.
 * Deterministic: the same bits for any number of threads.
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above, or if an id is out of range: the message has its
 * place and value. dtable is untouched.
 * Since 0.1. */
TRINE_API trine_status trine_embedding_backward(trine_queue *queue, const trine_embedding_backward_args *args);

typedef struct trine_reduce_sum_args {
    size_t struct_size; /* TRINE_ARGS(reduce_sum) */
    const trine_tensor *x; /* in r n */
    const trine_tensor *row_sums; /* out, optional r */
    const trine_tensor *column_sums; /* out, optional n */
} trine_reduce_sum_args;

/* Sums of rows and of columns */
TRINE_API trine_status trine_reduce_sum(trine_queue *queue, const trine_reduce_sum_args *args);

#ifdef __cplusplus
}
#endif

#endif
