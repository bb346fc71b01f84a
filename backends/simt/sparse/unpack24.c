/* SPDX-License-Identifier: Apache-2.0 */
/* unpack24 on devices: the host side. */
#include "pairs24_host.h"
#include "spec/places/unpack24.h"

static trine_status launch(const trine_call *call) {
    pairs24_params p = pairs24_of(call->dim[UNPACK24_DIM_R], call->dim[UNPACK24_DIM_N]);
    p.values = simt_rows_of(call, UNPACK24_VALUES);
    p.indices = simt_rows_of(call, UNPACK24_INDICES);
    p.to = simt_rows_of(call, UNPACK24_Y);
    p.aligned = simt_aligned(call, UNPACK24_VALUES) && simt_aligned(call, UNPACK24_Y);
    return pairs24_launch(call, &p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, UNPACK24_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, UNPACK24_DIM_N, SIMT_VECTOR * SIMT_THREADS);
}

SIMT_KERNELS(unpack24) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
