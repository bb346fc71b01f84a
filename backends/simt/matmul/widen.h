/* SPDX-License-Identifier: Apache-2.0 */
/* What widening an operand of float8 passes to the device. */
#ifndef TRINE_SIMT_WIDEN_H
#define TRINE_SIMT_WIDEN_H

#include <stdbool.h>
#include <stdint.h>

enum { SIMT_WIDEN_THREADS = 256 };

/* Matrices of rows that are consecutive in memory; strides in elements. */
typedef struct simt_widen_params {
    const void *from;
    void *to;
    int64_t batch, row; /* of `from` */
    int64_t batches, rows, columns;
    int64_t pitch; /* of `to`, from row to row: columns, rounded up to 8 */
    bool aligned;  /* rows of `from` begin at a multiple of 8 bytes */
} simt_widen_params;

#endif
