/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of the device code that backends share. Compiled once into each module, which supplies simt_launch(). */
#ifndef TRINE_SIMT_HOST_H
#define TRINE_SIMT_HOST_H

#include "ahead.h"
#include "backends/backend.h"
#include "list.h"
#include "params.h"
#include "backends/simt/matmul/scales.h"

/* At the end of backends/simt/<family>/<op>.c:
 *     SIMT_KERNELS(softmax) = { { SIMT_NAME, refuse, workspace, launch }, { 0 } };  */
#define SIMT_PASTE_(op, backend) trine_##op##_##backend
#define SIMT_PASTE(op, backend) SIMT_PASTE_(op, backend)
#define SIMT_STRING_(x) #x
#define SIMT_STRING(x) SIMT_STRING_(x)
#define SIMT_NAME SIMT_STRING(SIMT_BACKEND)
#define SIMT_KERNELS(op) \
    extern const trine_kernel SIMT_PASTE(op, SIMT_BACKEND)[]; \
    const trine_kernel SIMT_PASTE(op, SIMT_BACKEND)[]

enum { SIMT_MAX_TYPES = 4 };

/* The type variables that launches of any op name an entry by: the first, and of some entries the second. An op that
 * uses them asserts which they are. */
enum { SIMT_FIRST_TYPE, SIMT_SECOND_TYPE };

/* A device function: "<op>[_<step>][_ragged]{_<type>}[_<variant>]", as in softmax_bf16_256. */
typedef struct simt_function {
    const char *step;                 /* of an op in several launches; NULL: none */
    bool ragged;                      /* its rows are not whole vectors */
    trine_dtype type[SIMT_MAX_TYPES]; /* up to the first that is TRINE_NONE */
    int variant;                      /* 0: none */
    /* bytes of shared memory besides the function's own, the same at every launch of it */
    int shared;
    int cluster; /* blocks of one, of which a launch has whole ones; up to 1: none */
} simt_function;

/* Launches `blocks` blocks of a function of the call's op, unless there are none; `params` are passed by value. Does
 * not wait and does not allocate. */
trine_status simt_launch(const trine_call *call, const simt_function *function, int64_t blocks, int threads,
                         const void *params, size_t size);

/* The walk over the tensors of `set`, which have the shape of tensor `output`;
 * what is prefetched is of the first. */
simt_walk simt_walk_of(const trine_call *call, uint32_t set, int output);

/* The walk from one tensor to another of the same shape, or to itself; nothing is prefetched. */
simt_walk simt_walk_between(const trine_tensor *from, const trine_tensor *to);

/* The kernel of an op that is one walk over all its tensors, which needs no host code of its own: device code gets
 * walk_call<trine_<op>_args>. */
extern const trine_kernel simt_walk_kernels[];

/* Its edges: along the last dimension of the op's first tensor. */
void simt_walk_edges(const trine_call *call, trine_kernel_edges *edges);

/* The threads of a row's group, the last part of a row entry's name: the first of `sizes` that holds n elements if each
 * thread holds `items`, or the last. And the blocks, and the threads of each. */
typedef struct simt_group {
    int size, threads;
    int64_t blocks;
} simt_group;
simt_group simt_group_of(int64_t rows, int64_t n, int items, int count, const int *sizes);

/* The groups that an op's row entries have, whose threads hold up to 32 elements of a row: of ops that hold one row at
 * a time, or two, or none, which read it once whatever its length: of those, small groups keep an SM busier, if there
 * are rows enough. */
typedef enum simt_ladder { SIMT_ONE_ROW, SIMT_TWO_ROWS, SIMT_STREAM } simt_ladder;
simt_group simt_row_group(int64_t rows, int64_t n, simt_ladder ladder);

/* Its edges: along dimension `symbol`, and of the dimension of rows where that counts. */
void simt_row_edges(trine_kernel_edges *edges, int rows, int symbol, simt_ladder ladder);

/* The edges of sums over the rows of a matrix (columns.h). */
void simt_columns_edges(trine_kernel_edges *edges, int rows, int symbol);

/* The whole launch of a row op, or of a step of it (NULL: it has none), whose entries are those of row.h for its first
 * type: `rows` rows along dimension `symbol`. */
trine_status simt_launch_rows(const trine_call *call, const char *step, int64_t rows, int symbol, simt_ladder ladder,
                              const void *params, size_t size);

/* The SMs that the queue's work runs on, where the backend has functions for what many of them do together; 0 where it
 * has none. Grids and splits are sized by these, never by the device's. */
int simt_units(const trine_call *call);

/* Dropout's constants. */
simt_dropout simt_dropout_of(float p, uint64_t seed, uint64_t offset);

/* by >= 1 */
simt_divisor simt_divisor_of(int64_t by);

static inline bool simt_present(const trine_call *call, int tensor) { return call->present >> tensor & 1; }
enum { SIMT_VECTOR = 8 }; /* elements of a row that are read at a time */
static inline int64_t simt_blocks(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

/* Of f32, bf16 or f16. */
static inline uint8_t simt_list_type_of(trine_dtype dtype) {
    return dtype == TRINE_F32 ? SIMT_LIST_F32 : dtype == TRINE_BF16 ? SIMT_LIST_BF16 : SIMT_LIST_F16;
}

/* Is every row of a tensor aligned to 16 bytes? True of absent ones. */
bool simt_aligned(const trine_call *call, int tensor);

/* Are the rows along dimension `symbol` whole vectors (row.h): aligned in all tensors that have it last, of a length
 * that is a multiple of 8 and leaves room in 31 bits? */
bool simt_rows_whole(const trine_call *call, int symbol);

/* What is prefetched of a tensor without gaps: its first bytes, the last dimension innermost; none of another. */
simt_ahead simt_ahead_of(const trine_call *call, int tensor);
/* Of at most so many bytes, by so many sectors at a time. */
simt_ahead simt_ahead_most(const trine_call *call, int tensor, int64_t bytes, int sectors);
/* The same for two tensors that are read side by side. */
simt_ahead_two simt_ahead_of_two(const trine_call *call, int first, int second);

/* A tensor's rows, the last dimension being along them; data is NULL if it is absent. */
simt_rows simt_rows_of(const trine_call *call, int tensor);
/* A product's scales, of two dimensions; data is NULL if they are absent. */
simt_scales simt_scales_of(const trine_call *call, int tensor);

#endif
