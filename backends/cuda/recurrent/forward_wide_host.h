/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of a recurrent cell's steps by clusters. The file that includes this has what forward_host.h asks for,
 * and has included that. */
#include "cells_wide_host.h"

static void wide_tiles(int64_t d, cell_wide *w) {
    w->pairs = (int)simt_blocks((int64_t)CELL_PRODUCTS * w->units, 2 * CELL_ROWS);
    w->depth = (int)simt_blocks(d, CELL_DEPTH);
}
static int64_t wide_bytes(const cell_wide *w) {
    const int64_t columns = (int64_t)w->across * CELL_ACROSS,
                  sums = w->slices * columns * (w->pairs * 2 * CELL_ROWS + CELL_APART);
    return CELL_BARRIERS + (int64_t)w->buffers * w->across * w->depth * CELL_COLUMN_BYTES + columns * CELL_COLUMN_ROOM +
           (sums + CELL_KINDS * columns * w->units + CELL_SAVED * w->units) * (int64_t)sizeof(float);
}
static cell_ask wide_ask(const trine_call *call) {
    return (cell_ask){ .count = sequences_of(call),
                       .h = CELL_DIM(H),
                       .d = CELL_DIM(D),
                       .type = call->type[CELL_PLACE(TYPE_T)],
                       .clocks = 2000,
                       .tiles = wide_tiles,
                       .bytes = wide_bytes };
}

static size_t workspace_wide(const trine_call *call) {
    const cell_ask ask = wide_ask(call);
    cell_wide w;
    cell_wide_of(call, &ask, &w);
    return (size_t)cell_wide_bytes(&ask, &w);
}

static trine_status launch_wide(const trine_call *call) {
    const cell_ask ask = wide_ask(call);
    cell_wide_params p = { .cell = params_of(call), .pieces = call->workspace };
    cell_wide_of(call, &ask, &p.wide);
    const simt_function pack = { .step = "pack", .type = { ask.type } };
    const trine_status status = simt_launch(call, &pack, cell_wide_packers(&ask, &p.wide), SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? cell_wide_launch(call, &ask, &p.wide, p.cell.cu != NULL, &p, sizeof p) : status;
}

static void edges_wide(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    cell_wide_edges(edges, CELL_PLACE(DIM_D), CELL_PLACE(DIM_B));
}

#include "kernel_wide_host.h"
