/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d_backward on devices: the host side. */
#include "pool_host.h"
#include "spec/places/pool2d_backward.h"

static pool_params params_of(const trine_call *call) {
    const trine_pool2d_backward_args *args = call->args;
    return POOL_PARAMS(call, args, POOL2D_BACKWARD_X, POOL2D_BACKWARD_DY, POOL2D_BACKWARD_DX);
}

static size_t workspace(const trine_call *call) {
    const pool_params p = params_of(call);
    return call->empty || p.kind != TRINE_POOL2D_MAX
               ? 0
               : (size_t)(p.windows * pool_piece(call->type[POOL2D_BACKWARD_TYPE_T]) * p.codes.size);
}

static trine_status launch(const trine_call *call) {
    pool_params p = params_of(call);
    const simt_function codes = { .step = "codes", .type = { call->type[POOL2D_BACKWARD_TYPE_T] } },
                        sums = { .type = { call->type[POOL2D_BACKWARD_TYPE_T] } };
    trine_status status = TRINE_OK;
    p.codes.data = call->workspace;
    if (p.kind == TRINE_POOL2D_MAX)
        status = simt_launch(call, &codes, simt_blocks(p.windows, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK
               ? simt_launch(call, &sums, simt_blocks(p.places, SIMT_THREADS), SIMT_THREADS, &p, sizeof p)
               : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, POOL2D_BACKWARD_DIM_C, pool_piece(call->type[POOL2D_BACKWARD_TYPE_T]));
    trine_kernel_edge(edges, POOL2D_BACKWARD_DIM_C, SIMT_THREADS);
}

SIMT_KERNELS(pool2d_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                  { 0 } };
