/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of segment_reduce and its gradient pass to their device sides. */
#ifndef TRINE_SIMT_SEGMENTS_H
#define TRINE_SIMT_SEGMENTS_H

#include "backends/simt/core/params.h"

/* A block of threads has a segment's columns, so many of them, each thread 4 of every so manieth row: with few columns
 * a segment's rows are shared by more threads. */
enum { SEGMENT_VECTOR = 4, SEGMENT_FEW = 32, SEGMENT_MANY = 128, SEGMENT_CLEARED = 64 /* rows of a block */ };

typedef struct segments_params {
    simt_rows x, dy, out; /* dy: of the gradient */
    const void *offsets;
    int64_t p, e, n, tiles; /* of a row */
    int32_t kind;
    bool wide_offsets; /* i64 */
    bool aligned;
} segments_params;

#endif
