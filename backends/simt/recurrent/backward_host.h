/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of a recurrent cell's gradient. The file that includes this has CELL_INPUTS, CELL_PRODUCTS, CELL_SAVED
 * and CELL_KINDS, of states, CELL_PLACE(), of a name, and cell_states(). */
#include "cells_host.h"

static int64_t sequences_of(const trine_call *call) {
    return trine_call_given(call, CELL_PLACE(CU_SEQLENS)) ? CELL_DIM(NSEQ) : CELL_DIM(B);
}
static int64_t rows_of(const trine_call *call) { return CELL_DIM(B) * CELL_DIM(T) * CELL_DIM(H) * CELL_DIM(D); }
static int64_t scratch_of(const trine_call *call) { return cell_scratch(CELL_DIM(D), CELL_PRODUCTS + CELL_KINDS); }

static size_t workspace(const trine_call *call) {
    return (size_t)(rows_of(call) * (CELL_SAVED + 1) + sequences_of(call) * CELL_DIM(H) * scratch_of(call)) *
           sizeof(float);
}

static cell_backward_params params_of(const trine_call *call) {
    const trine_tensor *cu = trine_call_given(call, CELL_PLACE(CU_SEQLENS));
    cell_backward_params p = {
        .cu = cu ? cu->data : NULL,
        .b = CELL_DIM(B),
        .t = CELL_DIM(T),
        .h = CELL_DIM(H),
        .d = CELL_DIM(D),
        .count = sequences_of(call),
        .dy = cell_tensor_of(call, CELL_PLACE(DY), false),
        .r = cell_matrices_of(call, CELL_PLACE(R), CELL_PRODUCTS > 1),
        .y = cell_tensor_of(call, CELL_PLACE(Y), false),
        .gates = cell_tensor_of(call, CELL_PLACE(GATES), CELL_SAVED > 1),
        .dwx = cell_tensor_of(call, CELL_PLACE(DWX), CELL_INPUTS > 1),
        .dr = cell_matrices_of(call, CELL_PLACE(DR), CELL_PRODUCTS > 1),
        .dbias = cell_bias_of(call, CELL_PLACE(DBIAS), CELL_SAVED > 1),
        .dg = call->workspace,
        .before = (float *)call->workspace + rows_of(call) * CELL_SAVED,
        .scratch = (float *)call->workspace + rows_of(call) * (CELL_SAVED + 1),
        .scratch_size = scratch_of(call),
        .tiles = simt_blocks(CELL_DIM(D), CELL_TILE),
    };
    cell_states(call, &p);
    return p;
}

static trine_status launch(const trine_call *call) {
    const trine_dtype type = call->type[CELL_PLACE(TYPE_T)];
    const cell_backward_params p = params_of(call);
    const simt_function steps = { .type = { type } }, sums = { .step = "sums", .type = { type } };
    const trine_status status = simt_launch(call, &steps, (p.count + (p.cu != NULL)) * p.h, SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &sums, p.h * CELL_SAVED * p.tiles * p.tiles, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CELL_PLACE(DIM_D), CELL_TILE);
    trine_kernel_edge(edges, CELL_PLACE(DIM_D), SIMT_THREADS / 2);
    trine_kernel_edge(edges, CELL_PLACE(DIM_D), CELL_HELD);
}
