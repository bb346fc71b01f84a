/* SPDX-License-Identifier: Apache-2.0 */
/* mlp_fused on devices: the host side. */
#include "mlp_host.h"
#include "spec/places/mlp_fused.h"

static int width_of(const trine_call *call) {
    return mlp_width(call->dim[MLP_FUSED_DIM_K], call->dim[MLP_FUSED_DIM_H], call->dim[MLP_FUSED_DIM_O]);
}

static size_t workspace(const trine_call *call) {
    return (size_t)mlp_copies(call->dim[MLP_FUSED_DIM_M], width_of(call)) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    const trine_mlp_fused_args *args = call->args;
    const trine_dtype type = call->type[MLP_FUSED_TYPE_T];
    const int width = width_of(call);
    const mlp_params p = {
        .x = mlp_rows_of(call, MLP_FUSED_X),
        .y = mlp_rows_of(call, MLP_FUSED_Y),
        .hidden = mlp_stack_of(call, MLP_FUSED_HIDDEN),
        .w = { mlp_rows_of(call, MLP_FUSED_W_IN), mlp_stack_of(call, MLP_FUSED_W), mlp_rows_of(call, MLP_FUSED_W_OUT) },
        .b = { mlp_rows_of(call, MLP_FUSED_B_IN), mlp_stack_of(call, MLP_FUSED_B), mlp_rows_of(call, MLP_FUSED_B_OUT) },
        .r = call->dim[MLP_FUSED_DIM_R],
        .k = call->dim[MLP_FUSED_DIM_K],
        .h = call->dim[MLP_FUSED_DIM_H],
        .m = call->dim[MLP_FUSED_DIM_M],
        .o = call->dim[MLP_FUSED_DIM_O],
        .width = width,
        .activation = args->activation,
        .output = args->output_activation,
        .copy = call->workspace,
        .turned = true,
    };
    const simt_function function = { .type = { type }, .variant = width };
    const trine_status status = mlp_launch_copy(call, &p, type);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &function, simt_blocks(p.r, MLP_HELD / width), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    mlp_edges(edges, MLP_FUSED_DIM_R, MLP_FUSED_DIM_H);
}

SIMT_KERNELS(mlp_fused) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
