/* SPDX-License-Identifier: Apache-2.0 */
/* What int_matmul_exact's host side passes to its device side. */
#ifndef TRINE_SIMT_EXACT_H
#define TRINE_SIMT_EXACT_H

#include "backends/simt/core/params.h"

/* Elements of a square of d, and words of four digits of a line in a step. */
enum { EXACT_SIDE = 16, EXACT_STEP = 32 };

typedef struct exact_lines {
    const double *from;
    int64_t batch, line, along; /* strides, in elements */
    int64_t count;              /* of a batch */
    uint32_t *digits;           /* slice by slice, four of them a word */
    int32_t *exponents;
} exact_lines;

typedef struct exact_params {
    exact_lines a, b;
    simt_rows d;
    int64_t k, words, down, across; /* words: of a slice, whole steps */
    int64_t rows;                   /* lines of a in all batches: those of b follow */
    int slices;
} exact_params;

#endif
