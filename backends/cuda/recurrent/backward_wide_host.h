/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of a recurrent cell's gradient by clusters. The file that includes this has what backward_host.h asks
 * for, and has included that. */
#include "cells_wide_host.h"

static void wide_tiles(int64_t d, cell_wide *w) {
    (void)d;
    w->pairs = (int)simt_blocks((int64_t)w->blocks * w->units, 2 * CELL_ROWS);
    w->depth = CELL_PRODUCTS * w->units / CELL_DEPTH;
}
static int64_t wide_bytes(const cell_wide *w) {
    const int64_t columns = (int64_t)w->across * CELL_ACROSS;
    return CELL_BARRIERS + (int64_t)w->across * w->depth * CELL_COLUMN_BYTES + columns * CELL_COLUMN_ROOM +
           (w->buffers * w->blocks * w->slices + CELL_KINDS) * columns * w->units * (int64_t)sizeof(float);
}
static cell_ask wide_ask(const trine_call *call) {
    return (cell_ask){ .count = sequences_of(call),
                       .h = CELL_DIM(H),
                       .d = CELL_DIM(D),
                       .type = call->type[CELL_PLACE(TYPE_T)],
                       .clocks = 4000,
                       .tiles = wide_tiles,
                       .bytes = wide_bytes,
                       .sends = true };
}

/* Bytes of gates' gradients and of h before them, whose rows come first in the workspace. */
static int64_t rows_wide(const trine_call *call) {
    enum { ALIGN = 16 };
    return simt_blocks(rows_of(call) * (CELL_SAVED + 1) * (int64_t)sizeof(float), ALIGN) * ALIGN;
}

static size_t workspace_wide(const trine_call *call) {
    const cell_ask ask = wide_ask(call);
    cell_wide w;
    cell_wide_of(call, &ask, &w);
    return (size_t)(rows_wide(call) + cell_wide_bytes(&ask, &w));
}

static trine_status launch_wide(const trine_call *call) {
    const cell_ask ask = wide_ask(call);
    cell_backward_wide_params p = { .cell = params_of(call),
                                    .pieces = (char *)call->workspace + rows_wide(call),
                                    .exact = !trine_call_given(call, CELL_PLACE(H0)) };
    p.cell.tiles = simt_blocks(ask.d, CELL_WEIGHTS_TILE);
    cell_wide_of(call, &ask, &p.wide);
    const simt_function pack = { .step = "pack", .type = { ask.type } },
                        weights = { .step = "weights", .type = { ask.type } };
    trine_status status = simt_launch(call, &pack, cell_wide_packers(&ask, &p.wide), SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK) status = cell_wide_launch(call, &ask, &p.wide, p.cell.cu != NULL, &p, sizeof p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &weights, ask.h * CELL_SAVED * p.cell.tiles * p.cell.tiles, SIMT_THREADS, &p, sizeof p);
}

static void edges_wide(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    cell_wide_edges(edges, CELL_PLACE(DIM_D), CELL_PLACE(DIM_B));
    trine_kernel_edge(edges, CELL_PLACE(DIM_D), CELL_WEIGHTS_TILE);
}

#include "kernel_wide_host.h"
