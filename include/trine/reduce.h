/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding lookup, gathers and scatters of rows, sums and means, the largest elements, and sorting. */
#ifndef TRINE_REDUCE_H
#define TRINE_REDUCE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_embedding_args {
    size_t struct_size;        /* sizeof(trine_embedding_args) */
    const trine_tensor *table; /* in v n */
    const trine_tensor *ids;   /* in t */
    const trine_tensor *y;     /* out t n */
} trine_embedding_args;

/* Embedding lookup: gathers rows of a table.
 *
 *     y[i,j] = table[ids[i],j]
 *
 * Shapes: table v n, ids t, y t n. The last dimension is contiguous, leading strides are free.
 * Types: table and y are f32, bf16, f16 or f64, the same; ids i32 or i64. Rows are copied.
 * Ranges: 0 <= ids < v.
 * Aliasing: none.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above, or if an id is out of range:
 * the message has its place and value. y is untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_embedding(trine_queue *queue, const trine_embedding_args *args);

typedef struct trine_embedding_backward_args {
    size_t struct_size;         /* sizeof(trine_embedding_backward_args) */
    const trine_tensor *dy;     /* in t n */
    const trine_tensor *ids;    /* in t */
    const trine_tensor *dtable; /* in and out v n */
    int32_t accumulate;         /* 1: add to what dtable holds; 0: overwrite it */
    int32_t padding_index_set;  /* 1: padding_index is read; 0: there is none */
    int64_t padding_index;      /* the row to which nothing is added */
} trine_embedding_backward_args;

/* Gradient of embedding: adds the rows of dy where their ids say.
 *
 *     dtable[k,j] = sum over i with ids[i] = k of dy[i,j];  plus what dtable held, if accumulate
 *
 * With accumulate, rows that no id names are not written. The sum of row padding_index is 0, if padding_index_set,
 * whatever names it: its dy may be anything. The forward has no such parameter, since it reads that row like any.
 *
 * Shapes: dy t n, ids t, dtable v n. The last dimension is contiguous, leading strides are free.
 * Types: dy is f32, bf16 or f16; dtable f32, or the type of dy; ids i32 or i64. Sums are in f32, in the order of i,
 * starting from what dtable held; rounded once.
 * Ranges: 0 <= ids < v; padding_index may be anything.
 * Aliasing: none.
 *
 * Error bound, besides the output's own rounding: 2 2^-24 c times the sum of the absolute values, c being how often the
 * row is named.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT if shapes, types, strides or overlaps contradict the above, or if an id is out of range:
 * the message has its place and value. dtable is untouched.
 *
 * Since 0.1. */
TRINE_API trine_status trine_embedding_backward(trine_queue *queue, const trine_embedding_backward_args *args);

typedef struct trine_reduce_sum_args {
    size_t struct_size;              /* sizeof(trine_reduce_sum_args) */
    const trine_tensor *x;           /* in r n */
    const trine_tensor *row_sums;    /* out, optional r */
    const trine_tensor *column_sums; /* out, optional n */
} trine_reduce_sum_args;

/* Sums of a matrix's rows, of its columns, or of both in one pass over it.
 *
 *     row_sums[i]    = sum_j x[i,j]
 *     column_sums[j] = sum_i x[i,j]
 *
 * At least one must be given. A sum of nothing is 0.
 *
 * Source: Higham 2002, section 4.2 (blocked sums).
 *
 * Shapes: x is r n, with any strides: rows that are contiguous are read fastest, and so are columns; row_sums is r,
 * column_sums n, contiguous.
 * Types: x is f32, bf16 or f16; the sums are of the same type or f32. Accumulation is f32, with one rounding at the
 * end.
 * Aliasing: nothing may overlap.
 *
 * Error bound: min(n, 256) + n/1024 + 16 (of column_sums r for n) in units of 2^-24, of the sum of absolute values;
 * spec/reduce/reduce_sum.c. Sums of integers that f32 holds are exact.
 * Deterministic: the same bits for any number of threads. Blocks depend on r and n alone, and on whether rows or
 * columns lie closer.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; neither sum given; an output that overlaps another tensor otherwise than said), TRINE_ERR_UNSUPPORTED (the
 * device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_reduce_sum(trine_queue *queue, const trine_reduce_sum_args *args);

typedef struct trine_topk_args {
    size_t struct_size;          /* sizeof(trine_topk_args) */
    const trine_tensor *x;       /* in r n */
    const trine_tensor *values;  /* out, optional r k */
    const trine_tensor *indices; /* out, optional r k */
    int32_t smallest;            /* 1: the smallest elements, in ascending order */
} trine_topk_args;

/* The k largest elements of each row, in descending order, and their places.
 *
 *     values[i,j] = x[i,indices[i,j]]
 *
 * indices[i] are the places of the k largest elements of row i, from the largest on; with smallest those of the k
 * smallest, from the smallest on. NaN is larger than any number, and -0 equals 0. Of equal elements the one with the
 * smaller index comes first, in either order: the result is one and the same on every device. With k = n a row is
 * sorted, and stays as it is among equals.
 *
 * At least one of values and indices must be given.
 *
 * Source: by definition. Kernels find the k-th element by its digits (Knuth 1998, section 5.2.5) and sort what is not
 * behind it.
 *
 * Shapes: x is r n, values and indices are r k with k <= n. The last dimension is contiguous, leading strides are free.
 * Types: x and values are f32, bf16 or f16, the same; indices i32 or i64. Elements are copied.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (x is NULL or no output is given; rank, sizes, strides or element types that the above
 * does not admit; k > n; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (a row of more than 2^31 - 1
 * elements; on devices, k > 2048), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_topk(trine_queue *queue, const trine_topk_args *args);

typedef struct trine_argmax_args {
    size_t struct_size;          /* sizeof(trine_argmax_args) */
    const trine_tensor *x;       /* in r n */
    const trine_tensor *indices; /* out r */
    const trine_tensor *values;  /* out, optional r */
    int32_t smallest;            /* 1: the smallest elements */
} trine_argmax_args;

/* The place of each row's largest element.
 *
 *     values[i] = x[i,indices[i]]
 *
 * indices[i] is the place of the largest element of row i; with smallest that of the smallest. NaN is larger than any
 * number, and -0 equals 0. Of equal elements it is the one with the smallest index: the result is one and the same on
 * every device, and the first of topk's.
 *
 * Source: by definition.
 *
 * Shapes: x is r n with n >= 1, indices and values are r. The last dimension is contiguous, the leading stride is free.
 * Types: x and values are f32, bf16 or f16, the same; indices i32 or i64. Elements are copied.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (a row of more than 2^31 - 1 elements with
 * indices in i32; the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_argmax(trine_queue *queue, const trine_argmax_args *args);

typedef struct trine_gather_rows_args {
    size_t struct_size;        /* sizeof(trine_gather_rows_args) */
    const trine_tensor *x;     /* in m n */
    const trine_tensor *index; /* in p */
    const trine_tensor *y;     /* out p n */
    int32_t pad;               /* 1: an index of -1 gives a row of zeros */
} trine_gather_rows_args;

/* Rows of a matrix in the order of an index: tokens of a batch for their experts, blocks of keys for a query.
 *
 *     y[i,j] = x[index[i],j]
 *
 * A row whose index is not in [0, m) is NaN, or 0 where x has integers; with pad, one whose index is -1 is 0. It is no
 * error: what embedding refuses where the host sees it is here what a list with free places has. The gradient is
 * scatter_add_rows.
 *
 * Source: by definition.
 *
 * Shapes: x is m n, index p, y p n. The last dimension is contiguous, leading strides are free.
 * Types: x and y are f32, bf16, f16, f64, i32, i8, u8 or e4m3, the same; index i32 or i64. Rows are copied.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; y
 * overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_gather_rows(trine_queue *queue, const trine_gather_rows_args *args);

typedef struct trine_scatter_add_rows_args {
    size_t struct_size;         /* sizeof(trine_scatter_add_rows_args) */
    const trine_tensor *x;      /* in p n */
    const trine_tensor *index;  /* in p */
    const trine_tensor *weight; /* in, optional p */
    const trine_tensor *y;      /* in and out m n */
    int32_t overwrite;          /* 1: what y holds is not added to */
} trine_scatter_add_rows_args;

/* Adds rows to those of a matrix that an index names: what experts made of their tokens, or the gradient of
 * gather_rows.
 *
 *     y[k,j] = y[k,j] + sum over i with index[i] = k of x[i,j] weight[i]
 *
 * Without weight it is 1. With overwrite what y holds is not read, and a row that no index names is 0; otherwise such a
 * row is not written. A row of x whose index is not in [0, m) is left out, whatever it holds.
 *
 * Source: by definition.
 *
 * Shapes: x is p n, index and weight are p, y is m n. The last dimension is contiguous, leading strides are free.
 * Types: x is f32, bf16 or f16; y f32, or the type of x; weight f32; index i32 or i64. Sums are in f32, in the order of
 * i, starting from what y held; rounded once.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound, besides the output's own rounding: 2 2^-24 c times the sum of the absolute values, c being how often the
 * row is named, and one more with weight; spec/reduce/scatter_add_rows.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; y overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel; on devices, more than 2^32
 * indices), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_scatter_add_rows(trine_queue *queue, const trine_scatter_add_rows_args *args);

typedef struct trine_block_mean_args {
    size_t struct_size;    /* sizeof(trine_block_mean_args) */
    const trine_tensor *x; /* in [b] s n */
    const trine_tensor *y; /* out [b] blocks n */
    int64_t size;          /* rows of a block; the last one may have fewer */
} trine_block_mean_args;

/* The means of blocks of rows: what stands for a block of keys when a query chooses among them.
 *
 *     y[b,i,j] = mean of x[b,k,j] over k in [i size, min((i+1) size, s))
 *
 * A block that begins at s or beyond is 0; rows that are in none of the blocks are not read. With blocks = ceil(s/size)
 * each row is in one.
 *
 * Source: Lu et al. 2025 (MoBA), section 2.2.
 *
 * Shapes: x is [b] s n, y [b] blocks n; where b is missing it is 1. The last dimension is contiguous, leading strides
 * are free.
 * Types: x is f32, bf16 or f16; y f32, or the type of x. Sums are in f32, rounded once.
 * Parameters: size >= 1.
 * Aliasing: y may not overlap x.
 *
 * Error bound, besides the output's own rounding: (c + 3) 2^-24 times the mean of the absolute values, c being the rows
 * of the block; spec/reduce/block_mean.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit;
 * size < 1; y overlaps x), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_block_mean(trine_queue *queue, const trine_block_mean_args *args);

typedef struct trine_argsort_args {
    size_t struct_size;          /* sizeof(trine_argsort_args) */
    const trine_tensor *x;       /* in r n */
    const trine_tensor *indices; /* out r n */
    const trine_tensor *values;  /* out, optional r n */
    int32_t descending;          /* 1: from the largest element on */
} trine_argsort_args;

/* Sorts each row: the places of its elements in ascending order, or in descending order.
 *
 *     values[i,j] = x[i,indices[i,j]]
 *
 * indices[i] are the places of row i's elements, from the smallest on; with descending from the largest on. NaN is
 * larger than any number, and -0 equals 0, as in topk. Equals stay in the order that they have in x, in either case:
 * the result is one and the same on every device. With descending it is that of topk with k = n.
 *
 * Source: Knuth 1998, section 5.2.5 (by digits, from the lowest on).
 *
 * Shapes: x, indices and values are r n. The last dimension is contiguous, leading strides are free.
 * Types: x and values are f32, bf16, f16, i32 or i64, the same; indices i32 or i64. Elements are copied.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (a row of more than 2^31 - 1 elements; the
 * device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_argsort(trine_queue *queue, const trine_argsort_args *args);

enum {
    TRINE_SEGMENT_SUM = 0,
    TRINE_SEGMENT_MEAN = 1,
    TRINE_SEGMENT_MAX = 2,
    TRINE_SEGMENT_MIN = 3,
    TRINE_SEGMENT_LOGSUMEXP = 4,
    TRINE_SEGMENT_PRODUCT = 5
};

typedef struct trine_segment_reduce_args {
    size_t struct_size;          /* sizeof(trine_segment_reduce_args) */
    const trine_tensor *x;       /* in p n */
    const trine_tensor *offsets; /* in e+1 */
    const trine_tensor *y;       /* out e n */
    int32_t kind;                /* TRINE_SEGMENT_* */
} trine_segment_reduce_args;

/* Reduces rows that lie one behind the other, segment by segment: what a graph's nodes or a circuit's gates get from
 * those before them.
 *
 *     y[s,j] = the sum, mean, max, min, ln of the sum of exp, or product of x[i,j] over offsets[s] <= i < offsets[s+1]
 *
 * Of an empty segment the sum and the mean are 0, the maximum and the logsumexp -Inf, the minimum Inf, the product 1. A
 * NaN makes all of them NaN. Products and logsumexp neither overflow nor underflow on the way. Rows in front of the
 * first segment and behind the last one are not read.
 *
 * Source: by definition; Maene et al. 2025 (KLay), section 3, has sum, product and logsumexp as layers of a circuit.
 *
 * Shapes: x is p n, offsets e+1, y e n. The last dimension is contiguous, leading strides are free.
 * Types: x and y are f32, bf16 or f16, the same; offsets i32 or i64. Arithmetic is f32, rounded once.
 * Ranges: offsets ascend from at least 0 to p at most.
 * Aliasing: y may not overlap another tensor.
 *
 * Error bound, besides the output's own rounding, in units of 2^-24, c being the rows of the segment: sum c of the sum
 * of absolute values, mean c + 3 of their mean; max and min are exact; product c + 2 of itself; logsumexp see
 * spec/reduce/segment_reduce.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; y
 * overlaps; on the CPU, offsets that do not ascend as said), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE. On devices a segment whose own two offsets do
 * not ascend within 0 and p is NaN.
 *
 * Since 0.1. */
TRINE_API trine_status trine_segment_reduce(trine_queue *queue, const trine_segment_reduce_args *args);

typedef struct trine_segment_reduce_backward_args {
    size_t struct_size;          /* sizeof(trine_segment_reduce_backward_args) */
    const trine_tensor *dy;      /* in e n */
    const trine_tensor *x;       /* in p n */
    const trine_tensor *offsets; /* in e+1 */
    const trine_tensor *dx;      /* out p n; may be x */
    int32_t kind;                /* TRINE_SEGMENT_* */
} trine_segment_reduce_backward_args;

/* The gradient of trine_segment_reduce().
 *
 *     dx[i,j] = dy[s,j] d y[s,j] / d x[i,j],  s with offsets[s] <= i < offsets[s+1]
 *
 * That is dy for sum, dy/c for the mean of c rows, dy exp(x - y) for logsumexp, and dy times the product of the other
 * rows for product, right where some of them are 0. For max and min all of dy goes to the first row that has the value
 * of y, or to the first NaN, and 0 to the others. The gradient of a logsumexp that is -Inf is 0. dx is 0 in rows that
 * are in no segment.
 *
 * Source: the derivative of trine_segment_reduce()'s formula.
 *
 * Shapes: dy is e n, x p n, offsets e+1, dx p n. The last dimension is contiguous, leading strides are free.
 * Types: dy, x and dx are f32, bf16 or f16, the same; offsets i32 or i64. Arithmetic is f32, rounded once.
 * Ranges: offsets ascend from at least 0 to p at most.
 * Aliasing: dx may be x.
 *
 * Error bound, besides the output's own rounding, in units of 2^-24 of dx, c being the rows of the segment: mean 3;
 * sum, max and min are exact; product c + 4; logsumexp see spec/reduce/segment_reduce_backward.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a tensor is NULL; rank, sizes, strides or element types that the above does not admit; dx
 * overlaps otherwise than said; on the CPU, offsets that do not ascend as said), TRINE_ERR_UNSUPPORTED (the device has
 * no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE. On devices, where offsets do not
 * ascend as said, dx may hold any values.
 *
 * Since 0.1. */
TRINE_API trine_status trine_segment_reduce_backward(trine_queue *queue,
                                                     const trine_segment_reduce_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
