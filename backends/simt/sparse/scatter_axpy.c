/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_axpy on devices: the host side. */
#include "scatter_axpy.h"
#include "backends/simt/core/host.h"
#include "spec/places/scatter_axpy.h"

/* Of a block: whole tiles. */
static int64_t entries_of(const trine_call *call) {
    return simt_blocks(simt_blocks(call->dim[SCATTER_AXPY_DIM_P], SCATTER_TILE), SCATTER_BLOCKS) * SCATTER_TILE;
}
static int64_t blocks_of(const trine_call *call) {
    const int64_t p = call->dim[SCATTER_AXPY_DIM_P];
    return p > 0 ? simt_blocks(p, entries_of(call)) : 0;
}

static size_t workspace(const trine_call *call) { return (size_t)blocks_of(call) * sizeof(int64_t); }

static trine_status launch(const trine_call *call) {
    const trine_scatter_axpy_args *args = call->args;
    const trine_tensor *index = &call->tensor[SCATTER_AXPY_INDEX], *d = &call->tensor[SCATTER_AXPY_D],
                       *saved = trine_call_given(call, SCATTER_AXPY_SAVED);
    const trine_dtype W = call->type[SCATTER_AXPY_TYPE_W];
    const int64_t m = call->dim[SCATTER_AXPY_DIM_M], n = call->dim[SCATTER_AXPY_DIM_N];
    const scatter_params p = { .w = simt_rows_of(call, SCATTER_AXPY_W),
                               .index = index->data,
                               .d = d->data,
                               .saved = saved ? saved->data : NULL,
                               .reached = call->workspace,
                               .p = call->dim[SCATTER_AXPY_DIM_P],
                               .n = n,
                               .places = m * n,
                               .block = entries_of(call),
                               .row = simt_divisor_of(n > 0 ? n : 1),
                               .alpha = args->alpha + 0,
                               .put = args->put,
                               .long_ids = index->dtype == TRINE_I64,
                               .alike = d->dtype == W };
    const int64_t blocks = blocks_of(call);
    const simt_function reach = { .step = "reach" }, entries = { .type = { W } };
    const trine_status status = simt_launch(call, &reach, blocks, SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? simt_launch(call, &entries, blocks, SIMT_THREADS, &p, sizeof p) : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SCATTER_AXPY_DIM_P, SCATTER_EACH);
    trine_kernel_edge(edges, SCATTER_AXPY_DIM_P, SCATTER_TILE);
}

SIMT_KERNELS(scatter_axpy) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
