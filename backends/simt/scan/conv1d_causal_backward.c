/* SPDX-License-Identifier: Apache-2.0 */
/* conv1d_causal_backward on devices: the host side. */
#include "conv1d.h"
#include "scan_host.h"
#include "spec/places/conv1d_causal_backward.h"

static int64_t part_rows_of(const trine_call *call) {
    const int64_t rows = call->dim[CONV1D_CAUSAL_BACKWARD_DIM_B] * call->dim[CONV1D_CAUSAL_BACKWARD_DIM_T],
                  even = simt_blocks(rows, CONV_PARTS);
    return even > CONV_LEAST ? even : CONV_LEAST;
}
static int64_t parts_of(const trine_call *call) {
    const int64_t rows = call->dim[CONV1D_CAUSAL_BACKWARD_DIM_B] * call->dim[CONV1D_CAUSAL_BACKWARD_DIM_T];
    return simt_blocks(rows, part_rows_of(call));
}

static size_t workspace(const trine_call *call) {
    return (size_t)(parts_of(call) * (call->dim[CONV1D_CAUSAL_BACKWARD_DIM_K] + 1) *
                    call->dim[CONV1D_CAUSAL_BACKWARD_DIM_N]) *
           sizeof(float);
}

static conv_backward_params params_of(const trine_call *call) {
    const trine_conv1d_causal_backward_args *args = call->args;
    const int64_t *dim = call->dim, b = dim[CONV1D_CAUSAL_BACKWARD_DIM_B], t = dim[CONV1D_CAUSAL_BACKWARD_DIM_T];
    const trine_tensor *bias = trine_call_given(call, CONV1D_CAUSAL_BACKWARD_BIAS),
                       *dbias = trine_call_given(call, CONV1D_CAUSAL_BACKWARD_DBIAS);
    return (conv_backward_params){
        .shape = scan_shape_of(call, CONV1D_CAUSAL_BACKWARD_CU_SEQLENS, b, t, dim[CONV1D_CAUSAL_BACKWARD_DIM_N],
                               dim[CONV1D_CAUSAL_BACKWARD_DIM_NSEQ], false),
        .x = simt_rows_of(call, CONV1D_CAUSAL_BACKWARD_X),
        .x0 = simt_rows_of(call, CONV1D_CAUSAL_BACKWARD_X0),
        .weight = simt_rows_of(call, CONV1D_CAUSAL_BACKWARD_WEIGHT),
        .dy = simt_rows_of(call, CONV1D_CAUSAL_BACKWARD_DY),
        .dx = simt_rows_of(call, CONV1D_CAUSAL_BACKWARD_DX),
        .dweight = simt_rows_of(call, CONV1D_CAUSAL_BACKWARD_DWEIGHT),
        .dx0 = simt_rows_of(call, CONV1D_CAUSAL_BACKWARD_DX0),
        .bias = bias ? bias->data : NULL,
        .dbias = dbias ? dbias->data : NULL,
        .sums = call->workspace,
        .rows = b * t,
        .part_rows = part_rows_of(call),
        .parts = parts_of(call),
        .k = (int32_t)dim[CONV1D_CAUSAL_BACKWARD_DIM_K],
        .silu = args->silu,
    };
}

static trine_status launch(const trine_call *call) {
    const conv_backward_params p = params_of(call);
    const trine_dtype type = call->type[CONV1D_CAUSAL_BACKWARD_TYPE_T],
                      of_weight = call->type[CONV1D_CAUSAL_BACKWARD_TYPE_W];
    const simt_function parts = { .step = p.k <= CONV_FEW ? "few" : "parts", .type = { type, of_weight } },
                        starts = { .step = "starts", .type = { type, of_weight } },
                        finish = { .step = "finish", .type = { of_weight } };
    const int64_t sums = p.k + (p.dbias != NULL);
    trine_status status = simt_launch(call, &parts, p.parts * p.shape.tiles, SCAN_THREADS, &p, sizeof p);
    if (status == TRINE_OK && p.dx0.data)
        status = simt_launch(call, &starts, p.shape.count * p.shape.tiles, SCAN_THREADS, &p, sizeof p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &finish, sums * p.shape.tiles, SCAN_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CONV1D_CAUSAL_BACKWARD_DIM_N, SCAN_THREADS);
    trine_kernel_edge(edges, CONV1D_CAUSAL_BACKWARD_DIM_T, CONV_LEAST);
    trine_kernel_edge(edges, CONV1D_CAUSAL_BACKWARD_DIM_T, (int64_t)CONV_LEAST * CONV_PARTS);
}

SIMT_KERNELS(conv1d_causal_backward) = {
    { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
