/* SPDX-License-Identifier: Apache-2.0 */
/* pool2d on devices: the host side. */
#include "pool_host.h"
#include "spec/places/pool2d.h"

/* What a thread has: as many channels as leave threads enough, or a piece, or one. */
typedef enum pool_way { POOL_ENOUGH, POOL_PIECE, POOL_SINGLE } pool_way;

static trine_status launch(const trine_call *call) {
    const trine_pool2d_args *args = call->args;
    pool_params p = POOL_PARAMS(call, args, POOL2D_X, POOL2D_Y, POOL2D_INDICES);
    const pool_way way = *(const pool_way *)call->self;
    const simt_function function = { .type = { call->type[POOL2D_TYPE_T] } };
    if (way == POOL_ENOUGH ? p.windows < (int64_t)POOL_FEW * simt_units(call) : way == POOL_SINGLE) pool_set_single(&p);
    return simt_launch(call, &function, simt_blocks(p.windows, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, POOL2D_DIM_C, pool_piece(call->type[POOL2D_TYPE_T]));
    trine_kernel_edge(edges, POOL2D_DIM_C, SIMT_THREADS);
}

#define POOL_KERNEL(text, way) \
    { .name = SIMT_NAME text, .launch = launch, .self = &(const pool_way){ way }, .edges = edges }
/* By the number of windows, and each way, for TRINE_KERNEL. */
SIMT_KERNELS(pool2d) = {
    POOL_KERNEL("", POOL_ENOUGH), POOL_KERNEL("_pieces", POOL_PIECE), POOL_KERNEL("_single", POOL_SINGLE), { 0 }
};
