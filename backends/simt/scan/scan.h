/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of ops along time passes to their device side. */
#ifndef TRINE_SIMT_SCAN_H
#define TRINE_SIMT_SCAN_H

#include "backends/simt/core/params.h"

enum {
    SCAN_THREADS = 64, /* channels of a block, all of a sequence */
    SCAN_AHEAD = 16    /* steps that are asked for at a time */
};

typedef struct scan_shape {
    const int32_t *cu;   /* NULL: the members of the batch are the sequences */
    int64_t t, n, count; /* count: of sequences */
    int64_t tiles;       /* blocks of a sequence */
    bool reverse;
} scan_shape;

typedef struct linear_scan_params {
    scan_shape shape;
    simt_rows x, g, h0, y, last;
} linear_scan_params;

typedef struct linear_scan_backward_params {
    scan_shape shape;
    simt_rows dy, g, y, h0, dlast, dx, dg, dh0;
} linear_scan_backward_params;

#endif
