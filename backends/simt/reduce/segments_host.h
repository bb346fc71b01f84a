/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of what segment_reduce and its gradient share. */
#ifndef TRINE_SIMT_SEGMENTS_HOST_H
#define TRINE_SIMT_SEGMENTS_HOST_H

#include "segments.h"
#include "backends/simt/core/host.h"

static inline int segments_columns(int64_t n) { return n <= SEGMENT_FEW ? SEGMENT_FEW : SEGMENT_MANY; }

/* Launches a block for each of the segments by each tile of columns. */
static inline trine_status segments_launch(const trine_call *call, segments_params *p, trine_dtype type) {
    const int columns = segments_columns(p->n);
    p->tiles = simt_blocks(p->n, columns);
    const simt_function function = { .type = { type }, .variant = columns };
    return simt_launch(call, &function, p->e * p->tiles, SIMT_THREADS, p, sizeof *p);
}

static inline void segments_edges(trine_kernel_edges *edges, int symbol) {
    trine_kernel_edge(edges, symbol, SEGMENT_VECTOR);
    trine_kernel_edge(edges, symbol, SEGMENT_FEW);
    trine_kernel_edge(edges, symbol, SEGMENT_MANY);
}

#endif
