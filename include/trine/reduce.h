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

/* Embedding lookup */
TRINE_API trine_status trine_embedding(trine_queue *queue, const trine_embedding_args *args);

typedef struct trine_embedding_backward_args {
    size_t struct_size; /* TRINE_ARGS(embedding_backward) */
    const trine_tensor *dy; /* in t n */
    const trine_tensor *ids; /* in t */
    const trine_tensor *dtable; /* in and out v n */
    int32_t accumulate; /* 1: add to what dtable holds; 0: overwrite it */
} trine_embedding_backward_args;

/* Gradient of embedding */
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
