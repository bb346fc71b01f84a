/* SPDX-License-Identifier: Apache-2.0 */
/* pack24 on devices: the host side. */
#include "pairs24_host.h"
#include "spec/places/pack24.h"

static trine_status launch(const trine_call *call) {
    pairs24_params p = pairs24_of(call->dim[PACK24_DIM_R], call->dim[PACK24_DIM_N]);
    p.from = simt_rows_of(call, PACK24_X);
    p.values = simt_rows_of(call, PACK24_VALUES);
    p.indices = simt_rows_of(call, PACK24_INDICES);
    p.checked = call->type[PACK24_TYPE_T] != TRINE_I8 && !((const trine_pack24_args *)call->args)->prune;
    p.aligned = simt_aligned(call, PACK24_X) && simt_aligned(call, PACK24_VALUES);
    return pairs24_launch(call, &p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, PACK24_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, PACK24_DIM_N, SIMT_VECTOR * SIMT_THREADS);
}

SIMT_KERNELS(pack24) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
