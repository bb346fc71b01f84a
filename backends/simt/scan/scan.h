/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of ops along time passes to their device side. */
#ifndef TRINE_SIMT_SCAN_H
#define TRINE_SIMT_SCAN_H

#include "backends/simt/core/params.h"

enum {
    SCAN_THREADS = 64, /* channels of a block, all of a sequence */
    /* Steps that are asked for before they are taken: of all of a sequence's, and of a chunk's, where more threads ask.
     * So much code as many steps are is slow to fetch: it pays where they are taken again and again. */
    SCAN_AHEAD = 64,
    SCAN_FEW_AHEAD = 16,
    SCAN_SHORT = 8,   /* steps up to which none is asked for before */
    SCAN_STARTS = 64, /* chunks whose starts are found at a time */
    /* Channels of all sequences that keep a device's memory busy by themselves: with an eighth of them at most, time is
     * cut into chunks, of so many steps at least and at most. */
    SCAN_CHANNELS = 1 << 16,
    SCAN_LEAST_CHUNK = 256,
    SCAN_MOST_CHUNK = 1 << 20
};

typedef struct scan_shape {
    const int32_t *cu;   /* NULL: the members of the batch are the sequences */
    int64_t t, n, count; /* count: of sequences */
    int64_t tiles;       /* blocks of a chunk */
    bool reverse;
    int64_t chunk; /* steps of one; more than there are where time is not cut into chunks */
    /* Chunks of a sequence, where these are of one length; those of packed ones are numbered from first / chunk + the
     * sequence's number on. parts: numbers in all, the room behind the last sequence included. */
    int64_t chunks, parts;
    /* By number, and channel. What a chunk does to a state h that it begins with is gain 2^power h + end; `end` becomes
     * the state that it begins with. */
    float *gain, *end;
    int32_t *power;
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
