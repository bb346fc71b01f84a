/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_fused_backward on devices: the host side. */
#include "mlp_host.h"
#include "spec/places/mlp_fused_backward.h"

static int width_of(const trine_call *call) {
    return mlp_width(call->dim[MLP_FUSED_BACKWARD_DIM_K], call->dim[MLP_FUSED_BACKWARD_DIM_H],
                     call->dim[MLP_FUSED_BACKWARD_DIM_O]);
}

/* Tiles of rows, of a chunk, and chunks. */
static int64_t tiles_of(const trine_call *call) {
    return simt_blocks(call->dim[MLP_FUSED_BACKWARD_DIM_R], MLP_HELD / width_of(call));
}
static int64_t chunk_of(const trine_call *call) {
    const int64_t tiles = simt_blocks(tiles_of(call), MLP_CHUNKS);
    return tiles > 0 ? tiles : 1;
}
static int64_t chunks_of(const trine_call *call) { return simt_blocks(tiles_of(call), chunk_of(call)); }

static size_t workspace(const trine_call *call) {
    return (size_t)(mlp_copies(call->dim[MLP_FUSED_BACKWARD_DIM_M], width_of(call)) * (1 + chunks_of(call))) *
           sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const trine_mlp_fused_backward_args *args = call->args;
    const trine_dtype type = call->type[MLP_FUSED_BACKWARD_TYPE_T];
    const int width = width_of(call);
    const int64_t copies = mlp_copies(call->dim[MLP_FUSED_BACKWARD_DIM_M], width);
    const mlp_params p = {
        .x = mlp_rows_of(call, MLP_FUSED_BACKWARD_X),
        .y = mlp_rows_of(call, MLP_FUSED_BACKWARD_Y),
        .hidden = mlp_stack_of(call, MLP_FUSED_BACKWARD_HIDDEN),
        .dy = mlp_rows_of(call, MLP_FUSED_BACKWARD_DY),
        .dx = mlp_rows_of(call, MLP_FUSED_BACKWARD_DX),
        .w = { mlp_rows_of(call, MLP_FUSED_BACKWARD_W_IN), mlp_stack_of(call, MLP_FUSED_BACKWARD_W),
               mlp_rows_of(call, MLP_FUSED_BACKWARD_W_OUT) },
        .dw = { mlp_rows_of(call, MLP_FUSED_BACKWARD_DW_IN), mlp_stack_of(call, MLP_FUSED_BACKWARD_DW),
                mlp_rows_of(call, MLP_FUSED_BACKWARD_DW_OUT) },
        .db = { mlp_rows_of(call, MLP_FUSED_BACKWARD_DB_IN), mlp_stack_of(call, MLP_FUSED_BACKWARD_DB),
                mlp_rows_of(call, MLP_FUSED_BACKWARD_DB_OUT) },
        .r = call->dim[MLP_FUSED_BACKWARD_DIM_R],
        .k = call->dim[MLP_FUSED_BACKWARD_DIM_K],
        .h = call->dim[MLP_FUSED_BACKWARD_DIM_H],
        .m = call->dim[MLP_FUSED_BACKWARD_DIM_M],
        .o = call->dim[MLP_FUSED_BACKWARD_DIM_O],
        .width = width,
        .activation = args->activation,
        .output = args->output_activation,
        .copy = call->workspace,
        .partial = (float *)call->workspace + copies,
        .tiles = tiles_of(call),
        .chunk = chunk_of(call),
        .chunks = chunks_of(call),
    };
    const simt_function function = { .type = { type }, .variant = width }, sum = { .step = "sum", .type = { type } };
    trine_status status = mlp_launch_copy(call, &p, type);
    if (status == TRINE_OK) status = simt_launch(call, &function, p.chunks, SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? simt_launch(call, &sum, simt_blocks(copies, SIMT_THREADS), SIMT_THREADS, &p, sizeof p)
                              : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    mlp_edges(edges, MLP_FUSED_BACKWARD_DIM_R, MLP_FUSED_BACKWARD_DIM_H);
}

SIMT_KERNELS(mlp_fused_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                     { 0 } };
