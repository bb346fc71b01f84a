/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_rows on devices: the host side. */
#include "dots.h"
#include "backends/simt/core/host.h"
#include "spec/places/matvec_rows.h"

static trine_status launch(const trine_call *call) {
    const trine_matvec_rows_args *args = call->args;
    const trine_tensor *rows = &call->tensor[MATVEC_ROWS_ROWS], *bias = trine_call_given(call, MATVEC_ROWS_BIAS);
    const int64_t t = call->dim[MATVEC_ROWS_DIM_T], r = call->dim[MATVEC_ROWS_DIM_R],
                  blocks = simt_blocks(r, DOTS_TEAMS);
    const dots_params p = { .x = simt_rows_of(call, MATVEC_ROWS_X),
                            .w = simt_rows_of(call, MATVEC_ROWS_W),
                            .y = simt_rows_of(call, MATVEC_ROWS_Y),
                            .other = simt_rows_of(call, MATVEC_ROWS_ROWS),
                            .step = rows->stride[1],
                            .bias = bias ? bias->data : NULL,
                            .t = t,
                            .k = call->dim[MATVEC_ROWS_DIM_K],
                            .outputs = r,
                            .rows = call->dim[MATVEC_ROWS_DIM_M],
                            .blocks = simt_divisor_of(blocks),
                            .whole = simt_aligned(call, MATVEC_ROWS_X) && simt_aligned(call, MATVEC_ROWS_W) &&
                                     call->dim[MATVEC_ROWS_DIM_K] % SIMT_VECTOR == 0,
                            .wide = call->type[MATVEC_ROWS_TYPE_O] == TRINE_F32,
                            .long_ids = rows->dtype == TRINE_I64,
                            .pad = args->pad };
    const int few = rows->stride[0] == 0 ? DOTS_FEW : 1;
    const simt_function function = { .type = { call->type[MATVEC_ROWS_TYPE_T] }, .variant = few };
    return simt_launch(call, &function, blocks * simt_blocks(t, few), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATVEC_ROWS_DIM_K, SIMT_VECTOR);
    trine_kernel_edge(edges, MATVEC_ROWS_DIM_K, SIMT_VECTOR * DOTS_TEAM);
    trine_kernel_edge(edges, MATVEC_ROWS_DIM_T, DOTS_FEW);
    trine_kernel_edge(edges, MATVEC_ROWS_DIM_R, DOTS_TEAMS);
}

SIMT_KERNELS(matvec_rows) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
