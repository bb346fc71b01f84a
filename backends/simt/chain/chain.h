/* SPDX-License-Identifier: Apache-2.0 */
/* What chain's host side passes to its device side. */
#ifndef TRINE_SIMT_CHAIN_H
#define TRINE_SIMT_CHAIN_H

#include "backends/simt/core/params.h"
#include "spec/chain/program.h"

enum {
    CHAIN_VIEWS = CHAIN_INPUTS + CHAIN_OUTPUTS,
    CHAIN_AROUND = 3,               /* dimensions around a row */
    CHAIN_PIECE = 4 * SIMT_THREADS, /* elements of a block, where rows are not asked for */
    CHAIN_UNIFORM = CHAIN_CONSTANT - CHAIN_ROW + CHAIN_CONSTANTS
};

enum { CHAIN_F32, CHAIN_BF16, CHAIN_F16, CHAIN_I8, CHAIN_U8, CHAIN_I32 };

/* A tensor; strides in elements, the last one of a row, which is 1 or 0. */
typedef struct chain_view {
    void *data; /* NULL: absent */
    int64_t stride[CHAIN_AROUND];
    int32_t type, step;
} chain_view;

/* A step in two words: op, to, a and b from the lowest byte up; c. */
typedef struct chain_params {
    chain_view view[CHAIN_VIEWS];
    int64_t outer[CHAIN_AROUND], n;
    int64_t pieces, length; /* of a row, and elements of each */
    int32_t phases;
    chain_phase phase[CHAIN_PHASES];
    uint32_t step[CHAIN_STEPS][2];
    float constant[CHAIN_CONSTANTS];
} chain_params;

#endif
