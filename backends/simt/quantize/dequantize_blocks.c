/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize_blocks on devices: the host side. */
#include "blocks_host.h"
#include "spec/places/dequantize_blocks.h"

static trine_status launch(const trine_call *call) {
    const blocks_places at = { DEQUANTIZE_BLOCKS_Y,
                               DEQUANTIZE_BLOCKS_CODES,
                               DEQUANTIZE_BLOCKS_SCALES,
                               call->dim[DEQUANTIZE_BLOCKS_DIM_R],
                               call->dim[DEQUANTIZE_BLOCKS_DIM_K],
                               call->dim[DEQUANTIZE_BLOCKS_DIM_ROWS],
                               call->dim[DEQUANTIZE_BLOCKS_DIM_COLUMNS],
                               false };
    const blocks_params p = blocks_params_of(call, &at);
    if (at.k == 0) return TRINE_OK;
    const simt_function function = { .type = { call->type[DEQUANTIZE_BLOCKS_TYPE_T] } };
    return simt_launch(call, &function, simt_blocks(at.r * p.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

/* A unit of a block, and the second block of threads. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, DEQUANTIZE_BLOCKS_DIM_K, CODES_UNIT);
    trine_kernel_edge(edges, DEQUANTIZE_BLOCKS_DIM_K, SIMT_THREADS * CODES_UNIT);
}

SIMT_KERNELS(dequantize_blocks) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
