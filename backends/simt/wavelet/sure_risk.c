/* SPDX-License-Identifier: Apache-2.0 */
/* sure_risk on devices: the host side. Blocks sum parts of bands, then one of each band and threshold sums these. */
#include "spec/places/sure_risk.h"
#include "threshold_host.h"

static threshold_params params_of(const trine_call *call) {
    const trine_sure_risk_args *args = call->args;
    const trine_tensor *to = &call->tensor[SURE_RISK_RISK];
    threshold_params p = threshold_params_of(&call->tensor[SURE_RISK_X], &call->tensor[SURE_RISK_THRESHOLD]);
    p.to = to->data, p.to_band = to->stride[0], p.to_step = to->stride[1];
    p.g = to->shape[1];
    p.variance = (double)args->sigma * args->sigma;
    p.parts = simt_blocks(p.h * p.w, SURE_PART);
    p.partial = call->workspace;
    return p;
}

static size_t workspace(const trine_call *call) {
    const threshold_params p = params_of(call);
    return (size_t)(p.b * p.g * p.parts) * sizeof(double);
}

static trine_status launch(const trine_call *call) {
    const threshold_params p = params_of(call);
    const trine_dtype type = call->type[SURE_RISK_TYPE_T];
    const simt_function parts = { .type = { type } }, finish = { .step = "finish", .type = { type } };
    const int64_t blocks = p.b * p.parts * simt_blocks(p.g, SURE_THRESHOLDS);
    const trine_status status = simt_launch(call, &parts, blocks, SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? simt_launch(call, &finish, p.b * p.g, SIMT_THREADS, &p, sizeof p) : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t h = call->dim[SURE_RISK_DIM_H];
    trine_kernel_edge(edges, SURE_RISK_DIM_G, SURE_THRESHOLDS);
    trine_kernel_edge(edges, SURE_RISK_DIM_W, SIMT_THREADS);
    if (h > 0) trine_kernel_edge(edges, SURE_RISK_DIM_W, SURE_PART / h);
}

SIMT_KERNELS(sure_risk) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
