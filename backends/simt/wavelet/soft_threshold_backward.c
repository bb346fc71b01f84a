/* SPDX-License-Identifier: Apache-2.0 */
/* soft_threshold_backward on devices: the host side. Blocks of a fixed size sum parts of bands, then one of each band
 * sums these. */
#include "spec/places/soft_threshold_backward.h"
#include "threshold_host.h"

static threshold_params params_of(const trine_call *call) {
    return threshold_params_of(&call->tensor[SOFT_THRESHOLD_BACKWARD_X],
                               &call->tensor[SOFT_THRESHOLD_BACKWARD_THRESHOLD]);
}

static size_t workspace(const trine_call *call) {
    const threshold_params p = params_of(call);
    return (size_t)(p.b * p.parts) * sizeof(double);
}

static trine_status launch(const trine_call *call) {
    threshold_params p = params_of(call);
    const trine_dtype type = call->type[SOFT_THRESHOLD_BACKWARD_TYPE_T];
    const simt_function parts = { .type = { type } }, finish = { .step = "finish", .type = { type } };
    const trine_tensor *to = trine_call_given(call, SOFT_THRESHOLD_BACKWARD_DTHRESHOLD);
    p.dy = threshold_view_of(&call->tensor[SOFT_THRESHOLD_BACKWARD_DY]);
    p.y = threshold_view_of(trine_call_given(call, SOFT_THRESHOLD_BACKWARD_DX));
    p.partial = call->workspace;
    if (to) p.to = to->data, p.to_step = to->stride[0];
    const trine_status status = simt_launch(call, &parts, p.b * p.parts, SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK && to ? simt_launch(call, &finish, p.b, SIMT_THREADS, &p, sizeof p) : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const threshold_params p = params_of(call);
    if (p.h > 0) trine_kernel_edge(edges, SOFT_THRESHOLD_BACKWARD_DIM_W, THRESHOLD_PART / p.h);
}

SIMT_KERNELS(soft_threshold_backward) = {
    { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
