/* SPDX-License-Identifier: Apache-2.0 */
/* What tm_update's host side passes to its device side. */
#ifndef TRINE_SIMT_TM_UPDATE_H
#define TRINE_SIMT_TM_UPDATE_H

#include "backends/simt/core/params.h"

/* Threads that have a clause; blocks of few clauses and of many. */
enum { TM_TEAM = 32, TM_FEW = SIMT_THREADS, TM_MANY = 1024 };

typedef struct update_params {
    simt_rows literals;
    const int32_t *labels;
    void *states;
    uint8_t *include, *holds; /* include: NULL if absent; holds, in the workspace: [c][j] */
    int64_t states_stride[2], include_stride[2];
    int64_t e, c, j, l, w;
    uint64_t unlikely; /* words below it are of probability 1/s */
    simt_dropout random;
    int32_t threshold, low, high;
    bool boost, whole; /* whole: clauses' states are aligned to four */
} update_params;

#endif
