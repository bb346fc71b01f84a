/* SPDX-License-Identifier: Apache-2.0 */
/* sure_risk on devices: the host side. */
#include "spec/places/sure_risk.h"
#include "threshold_host.h"

static trine_status launch(const trine_call *call) {
    const trine_sure_risk_args *args = call->args;
    const trine_tensor *to = &call->tensor[SURE_RISK_RISK];
    threshold_params p = threshold_params_of(&call->tensor[SURE_RISK_X], &call->tensor[SURE_RISK_THRESHOLD]);
    const simt_function function = { .type = { call->type[SURE_RISK_TYPE_T] } };
    p.to = to->data, p.to_band = to->stride[0], p.to_step = to->stride[1];
    p.g = to->shape[1];
    p.variance = (double)args->sigma * args->sigma;
    return simt_launch(call, &function, p.b * p.g, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SURE_RISK_DIM_W, SIMT_THREADS);
}

SIMT_KERNELS(sure_risk) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
