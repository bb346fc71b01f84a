/* SPDX-License-Identifier: Apache-2.0 */
/* block_mean on devices: the host side. */
#include "block_mean.h"
#include "backends/simt/core/host.h"
#include "spec/places/block_mean.h"

static trine_status launch(const trine_call *call) {
    const trine_block_mean_args *args = call->args;
    const block_mean_params p = {
        .x = simt_rows_of(call, BLOCK_MEAN_X),
        .y = simt_rows_of(call, BLOCK_MEAN_Y),
        .s = call->dim[BLOCK_MEAN_DIM_S],
        .n = call->dim[BLOCK_MEAN_DIM_N],
        .blocks = call->dim[BLOCK_MEAN_DIM_BLOCKS],
        .size = args->size,
        .tiles = simt_blocks(call->dim[BLOCK_MEAN_DIM_N], MEAN_COLUMNS),
        .wide = simt_aligned(call, BLOCK_MEAN_X) && simt_aligned(call, BLOCK_MEAN_Y),
    };
    const simt_function function = { .type = { call->type[BLOCK_MEAN_TYPE_T], call->type[BLOCK_MEAN_TYPE_W] } };
    return simt_launch(call, &function, call->dim[BLOCK_MEAN_DIM_B] * p.blocks * p.tiles, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const trine_block_mean_args *args = call->args;
    trine_kernel_edge(edges, BLOCK_MEAN_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, BLOCK_MEAN_DIM_N, MEAN_COLUMNS);
    trine_kernel_edge(edges, BLOCK_MEAN_DIM_S, args->size);
}

SIMT_KERNELS(block_mean) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
