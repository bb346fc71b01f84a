/* SPDX-License-Identifier: Apache-2.0 */
/* What the host passes to a chain that was compiled at run time: plain data of one layout on both sides. */
#ifndef TRINE_SIMT_CHAIN_JOB_H
#define TRINE_SIMT_CHAIN_JOB_H

#include "chain.h"

/* How a tensor lies along the last dimension. */
enum { CHAIN_ABSENT, CHAIN_ALONG /* element by element */, CHAIN_STILL /* broadcast */ };

typedef struct chain_job {
    int64_t n, rows;                  /* of the last dimension; of the others */
    int64_t units;                    /* of all rows, where threads take units of them */
    int64_t whole_units;              /* all before this one are, if any is */
    int64_t length;                   /* of a unit */
    simt_divisor row_units;           /* of one row */
    simt_divisor shape[CHAIN_AROUND]; /* the innermost last */
    int64_t stride[CHAIN_VIEWS][CHAIN_AROUND];
    void *data[CHAIN_VIEWS];
    chain_constants numbers;
    simt_ahead_two ahead;
} chain_job;

/* Many of them in one launch. */
typedef struct chain_list_job {
    chain_constants numbers;
    chain_calls list;
} chain_list_job;

#endif
