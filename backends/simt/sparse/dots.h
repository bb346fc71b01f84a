/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of rows of a matrix with a few vectors: what both sides know. */
#ifndef TRINE_SIMT_DOTS_H
#define TRINE_SIMT_DOTS_H

#include "backends/simt/core/params.h"

enum {
    DOTS_TEAM = 32, /* threads of a row */
    DOTS_TEAMS = SIMT_THREADS / DOTS_TEAM,
    DOTS_FEW = 4 /* vectors that meet a row at once; or one */
};

typedef struct dots_params {
    simt_rows x, w, y;
    simt_rows other;  /* of matvec_masked the gate, of matvec_rows the list */
    int64_t step;     /* along a list */
    const void *bias; /* NULL: none */
    int64_t t, k, outputs, rows;
    simt_divisor blocks; /* that the outputs of as many vectors as are taken at once have */
    bool whole;          /* rows of x and w are aligned, and k is a multiple of 8 */
    bool wide, long_ids, pad;
} dots_params;

#endif
