/* SPDX-License-Identifier: Apache-2.0 */
/* What chain's host side passes to its device side. */
#ifndef TRINE_SIMT_CHAIN_H
#define TRINE_SIMT_CHAIN_H

#include "backends/simt/core/params.h"
#include "spec/chain/program.h"

enum {
    CHAIN_ROW_VIEWS = CHAIN_INPUTS + CHAIN_OUTPUTS, /* outputs of a row begin here */
    CHAIN_VIEWS = CHAIN_ROW_VIEWS + CHAIN_ROW_OUTPUTS,
    CHAIN_AROUND = 3,               /* dimensions around a row */
    CHAIN_PIECE = 4 * SIMT_THREADS, /* elements of a block, where rows are not asked for */
    CHAIN_WIDE_THREADS = 128,       /* of a block in f64, so that shared memory has its registers; likewise: */
    CHAIN_WIDE_PIECE = 4 * CHAIN_WIDE_THREADS,
    CHAIN_UNIFORM = CHAIN_CONSTANT - CHAIN_ROW + CHAIN_CONSTANTS
};

enum { CHAIN_F32, CHAIN_BF16, CHAIN_F16, CHAIN_I8, CHAIN_U8, CHAIN_I32, CHAIN_F64 };

/* A program's numbers, of the type that it computes in. */
typedef union chain_constants {
    float f32[CHAIN_CONSTANTS];
    double f64[CHAIN_CONSTANTS];
} chain_constants;
static inline chain_constants chain_constants_of(const chain_program *program) {
    chain_constants numbers = { { 0 } };
    for (int i = 0; i < program->constants; i++)
        if (program->wide)
            numbers.f64[i] = program->constant[i];
        else
            numbers.f32[i] = (float)program->constant[i];
    return numbers;
}

/* A program as device code walks it. A step is its op, `to`, a and b from the lowest byte up, and c apart. */
typedef struct chain_steps {
    int32_t phases, by_rows;
    chain_phase phase[CHAIN_PHASES];
    uint32_t step[CHAIN_STEPS];
    uint8_t c[CHAIN_STEPS];
    chain_constants numbers;
    uint8_t type[CHAIN_VIEWS];  /* CHAIN_F32 ... */
    uint8_t along[CHAIN_VIEWS]; /* is there an element for each of a row, and not one for all? */
} chain_steps;

/* A tensor; strides in elements. */
typedef struct chain_view {
    void *data; /* NULL: absent */
    int64_t stride[CHAIN_AROUND];
} chain_view;

typedef struct chain_params {
    chain_steps steps;
    chain_view view[CHAIN_VIEWS];
    int64_t outer[CHAIN_AROUND], n;
    int64_t pieces, length; /* of a row, and elements of each */
} chain_params;

/* Calls in one launch, which is all parameters: each item is `words` words, namely
 *     its first block; n; `outer` sizes around a row; and of each tensor of the set `tensors`: its address in two
 *     words, the lower one first, and its `outer` strides */
enum { CHAIN_LIST_CALLS = 64, CHAIN_LIST_WORDS = 768 };
typedef struct chain_calls {
    int32_t count, words, outer;
    uint32_t tensors;
    uint32_t item[CHAIN_LIST_WORDS];
} chain_calls;

typedef struct chain_list_params {
    chain_steps steps;
    chain_calls list;
} chain_list_params;

#endif
