/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d on devices: the host side. */
#include "pool_host.h"
#include "spec/places/pool2d.h"

static trine_status launch(const trine_call *call) {
    const trine_pool2d_args *args = call->args;
    const pool_params p = POOL_PARAMS(call, args, POOL2D_X, POOL2D_Y, POOL2D_INDICES);
    const simt_function function = { .type = { call->type[POOL2D_TYPE_T] } };
    return simt_launch(call, &function, simt_blocks(p.windows, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, POOL2D_DIM_C, pool_piece(call->type[POOL2D_TYPE_T]));
    trine_kernel_edge(edges, POOL2D_DIM_C, SIMT_THREADS);
}

SIMT_KERNELS(pool2d) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
