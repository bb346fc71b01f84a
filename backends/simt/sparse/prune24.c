/* SPDX-License-Identifier: Apache-2.0 */
/* prune24 on devices: the host side. */
#include "pairs24_host.h"
#include "spec/places/prune24.h"

static trine_status launch(const trine_call *call) {
    pairs24_params p = pairs24_of(call->dim[PRUNE24_DIM_R], call->dim[PRUNE24_DIM_N]);
    p.from = simt_rows_of(call, PRUNE24_X);
    p.to = simt_rows_of(call, PRUNE24_Y);
    p.mask = simt_rows_of(call, PRUNE24_MASK);
    p.aligned = simt_aligned(call, PRUNE24_X) && simt_aligned(call, PRUNE24_Y) && simt_aligned(call, PRUNE24_MASK);
    return pairs24_launch(call, &p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, PRUNE24_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, PRUNE24_DIM_N, SIMT_VECTOR * SIMT_THREADS);
}

SIMT_KERNELS(prune24) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
