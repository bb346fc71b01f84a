/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold on devices: the host side. */
#include "spec/places/soft_threshold.h"
#include "threshold_host.h"

static trine_status launch(const trine_call *call) {
    threshold_params p = threshold_params_of(&call->tensor[SOFT_THRESHOLD_X], &call->tensor[SOFT_THRESHOLD_THRESHOLD]);
    const simt_function function = { .type = { call->type[SOFT_THRESHOLD_TYPE_T] } };
    p.y = threshold_view_of(&call->tensor[SOFT_THRESHOLD_Y]);
    return simt_launch(call, &function, simt_blocks(p.b * p.h * p.w, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SOFT_THRESHOLD_DIM_W, SIMT_THREADS);
}

SIMT_KERNELS(soft_threshold) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
