/* SPDX-License-Identifier: Apache-2.0 */
/* moe_route_backward on devices: the host side. */
#include "moe_route.h"
#include "moe_route_backward.h"
#include "backends/simt/core/host.h"
#include "spec/places/moe_route_backward.h"

static const char *refuse(const trine_call *call) {
    return call->dim[MOE_ROUTE_BACKWARD_DIM_E] > INT32_MAX - ROUTE_LANES ? "more than 2^31 - 33 experts" : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_moe_route_backward_args *args = call->args;
    const trine_dtype type = call->type[MOE_ROUTE_BACKWARD_TYPE_T];
    const int64_t t = call->dim[MOE_ROUTE_BACKWARD_DIM_T];
    const route_backward_params p = {
        .dweights = simt_rows_of(call, MOE_ROUTE_BACKWARD_DWEIGHTS),
        .logits = simt_rows_of(call, MOE_ROUTE_BACKWARD_LOGITS),
        .experts = simt_rows_of(call, MOE_ROUTE_BACKWARD_EXPERTS),
        .dscores = simt_rows_of(call, MOE_ROUTE_BACKWARD_DSCORES),
        .dlogits = simt_rows_of(call, MOE_ROUTE_BACKWARD_DLOGITS),
        .tokens = t,
        .type = type == TRINE_F32    ? ROUTE_F32
                : type == TRINE_BF16 ? ROUTE_BF16
                                     : ROUTE_F16,
        .e = (int32_t)call->dim[MOE_ROUTE_BACKWARD_DIM_E],
        .k = (int32_t)call->dim[MOE_ROUTE_BACKWARD_DIM_K],
        .scale = args->scale,
        .sigmoid = args->gate == TRINE_GATE_SIGMOID,
        .renormalise = args->renormalise,
    };
    return simt_launch(call, &(simt_function){ 0 }, simt_blocks(t, ROUTE_TOKENS), ROUTE_TOKENS * ROUTE_LANES, &p,
                       sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MOE_ROUTE_BACKWARD_DIM_E, ROUTE_LANES);
    trine_kernel_edge(edges, MOE_ROUTE_BACKWARD_DIM_K, ROUTE_LANES);
    trine_kernel_edge(edges, MOE_ROUTE_BACKWARD_DIM_T, ROUTE_TOKENS);
}

SIMT_KERNELS(moe_route_backward) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
