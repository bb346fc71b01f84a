/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_blocks on devices: the host side. */
#include "blocks_host.h"
#include "spec/places/quantize_blocks.h"

/* Threads of a block: 16, or all of a block of threads. */
enum { FEW = 16, FEW_UNITS = 64 };

static blocks_params params_of(const trine_call *call) {
    const trine_quantize_blocks_args *args = call->args;
    const blocks_places at = { QUANTIZE_BLOCKS_X,
                               QUANTIZE_BLOCKS_CODES,
                               QUANTIZE_BLOCKS_SCALES,
                               call->dim[QUANTIZE_BLOCKS_DIM_R],
                               call->dim[QUANTIZE_BLOCKS_DIM_K],
                               call->dim[QUANTIZE_BLOCKS_DIM_ROWS],
                               call->dim[QUANTIZE_BLOCKS_DIM_COLUMNS],
                               args->powers == TRINE_POWERS_ALL,
                               args->upward };
    return blocks_params_of(call, &at);
}

static size_t workspace(const trine_call *call) {
    const blocks_params p = params_of(call);
    return p.pieces > 1 ? (size_t)(p.count * p.pieces) * sizeof(uint32_t) : 0;
}

static trine_status launch(const trine_call *call) {
    const blocks_params p = params_of(call);
    simt_function function = { .type = { call->type[QUANTIZE_BLOCKS_TYPE_T] } };
    if (p.pieces > 1) {
        function.step = "largest";
        const trine_status status = simt_launch(call, &function, p.count * p.pieces, SIMT_THREADS, &p, sizeof p);
        if (status != TRINE_OK) return status;
        function.step = "pieces";
        return simt_launch(call, &function, p.count * p.pieces, SIMT_THREADS, &p, sizeof p);
    }
    const bool few = p.high * simt_blocks(p.wide, CODES_UNIT) <= FEW_UNITS;
    function.variant = few ? FEW : SIMT_THREADS;
    return simt_launch(call, &function, simt_blocks(p.count, SIMT_THREADS / function.variant), SIMT_THREADS, &p,
                       sizeof p);
}

/* Pieces, units, and what few threads have. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, QUANTIZE_BLOCKS_DIM_R, BLOCKS_PIECE_ROWS);
    trine_kernel_edge(edges, QUANTIZE_BLOCKS_DIM_K, BLOCKS_PIECE_COLUMNS);
    trine_kernel_edge(edges, QUANTIZE_BLOCKS_DIM_K, CODES_UNIT);
    trine_kernel_edge(edges, QUANTIZE_BLOCKS_DIM_K, FEW_UNITS * CODES_UNIT);
}

SIMT_KERNELS(quantize_blocks) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                  { 0 } };
