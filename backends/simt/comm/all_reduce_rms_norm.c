/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm on devices: the host side. */
#include <trine/norm.h>

#include "backends/simt/comm/all_reduce_rms_norm.h"
#include "exchanges.h"
#include "spec/places/all_reduce_rms_norm.h"

/* Blocks of a launch at most, of which each has a row in the workspace. */
static int64_t blocks_of(const trine_call *call) {
    const int64_t r = call->dim[ALL_REDUCE_RMS_NORM_DIM_R], most = simt_group_blocks(call, RMS_HELD);
    return r < most ? r : most;
}

static size_t workspace(const trine_call *call) {
    return (size_t)(blocks_of(call) * call->dim[ALL_REDUCE_RMS_NORM_DIM_N]) * sizeof(float);
}

/* Does each row begin with a whole packet's address? */
static bool whole_rows(const simt_rows *rows, bool is_f32, trine_dtype T) {
    const size_t width = is_f32 ? sizeof(float) : trine_dtype_size(T);
    return ((uintptr_t)rows->data | (uintptr_t)rows->row * width) % EXCHANGE_PACKET == 0;
}

static trine_status launch(const trine_call *call) {
    const trine_all_reduce_rms_norm_args *args = call->args;
    const trine_dtype T = call->type[ALL_REDUCE_RMS_NORM_TYPE_T];
    const trine_tensor *rstd = trine_call_given(call, ALL_REDUCE_RMS_NORM_RSTD);
    const int64_t rows = call->dim[ALL_REDUCE_RMS_NORM_DIM_R];
    rms_params p = { .exchange = exchange_of(&call->tensor[ALL_REDUCE_RMS_NORM_X], &call->tensor[ALL_REDUCE_RMS_NORM_Y],
                                             call->dim[ALL_REDUCE_RMS_NORM_DIM_N], EXCHANGE_PACKET),
                     .weight = simt_rows_of(call, ALL_REDUCE_RMS_NORM_WEIGHT),
                     .residual = simt_rows_of(call, ALL_REDUCE_RMS_NORM_RESIDUAL),
                     .residual_out = simt_rows_of(call, ALL_REDUCE_RMS_NORM_RESIDUAL_OUT),
                     .rows = rows,
                     .rstd = rstd ? rstd->data : NULL,
                     .h = call->workspace,
                     .eps = args->eps,
                     .weight_offset = args->weight_offset,
                     .round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT,
                     .f32_residual = call->type[ALL_REDUCE_RMS_NORM_TYPE_R] == TRINE_F32,
                     .f32_weight = call->type[ALL_REDUCE_RMS_NORM_TYPE_W] == TRINE_F32 };
    /* those that are not given have no address */
    p.exchange.aligned = p.exchange.aligned && p.exchange.n * (int64_t)sizeof(float) % EXCHANGE_PACKET == 0 &&
                         whole_rows(&p.weight, p.f32_weight, T) && whole_rows(&p.residual, p.f32_residual, T) &&
                         whole_rows(&p.residual_out, p.f32_residual, T);
    return simt_exchange_more(call, &(simt_function){ .type = { T } }, &p, sizeof p, blocks_of(call) * EXCHANGE_THREADS,
                              1);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t elements = EXCHANGE_PACKET / (int64_t)trine_dtype_size(call->type[ALL_REDUCE_RMS_NORM_TYPE_T]);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_N, elements);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_N, elements * EXCHANGE_THREADS);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_N, RMS_KEPT * EXCHANGE_THREADS);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_R, simt_group_blocks(call, RMS_HELD));
}

SIMT_KERNELS(all_reduce_rms_norm) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                      { 0 } };
