/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on devices: the host side. */
#include "grouped_host.h"
#include "spec/places/grouped_matmul.h"

static const grouped_places places = GROUPED_PLACES(GROUPED_MATMUL);

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_args *args = call->args;
    return grouped_refuse(call, &places, args->divide);
}

static size_t workspace(const trine_call *call) { return grouped_workspace(call, &places); }

static trine_status launch(const trine_call *call) {
    const trine_grouped_matmul_args *args = call->args;
    const trine_tensor *w = &call->tensor[GROUPED_MATMUL_W];
    grouped_params p = grouped_params_of(call, &places, args->divide, args->activation);
    p.w = w->data, p.w_group = w->stride[0], p.w_lane = w->stride[1], p.w_along = w->stride[2];
    p.across = w->stride[2] != 1 && w->stride[1] == 1;
    p.w_aligned = grouped_aligned(w, w->stride[0], w->stride[p.across ? 2 : 1]);
    return grouped_launch(call, &p, call->type[GROUPED_MATMUL_TYPE_T], call->type[GROUPED_MATMUL_TYPE_O], &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    grouped_edges(edges, &places);
}

SIMT_KERNELS(grouped_matmul) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
