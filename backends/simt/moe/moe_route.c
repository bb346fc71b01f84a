/* SPDX-License-Identifier: Apache-2.0 */
/* moe_route on devices: the host side. */
#include "moe_route.h"
#include "backends/simt/core/host.h"
#include "spec/places/moe_route.h"

static const char *refuse(const trine_call *call) {
    return call->dim[MOE_ROUTE_DIM_E] > ROUTE_LANES * ROUTE_MANY ? "more than 1024 experts" : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_moe_route_args *args = call->args;
    const int64_t e = call->dim[MOE_ROUTE_DIM_E], t = call->dim[MOE_ROUTE_DIM_T];
    const trine_dtype type = call->type[MOE_ROUTE_TYPE_T];
    const bool grouped = args->groups > 1 && args->groups_kept > 0, few = e <= ROUTE_LANES * ROUTE_FEW;
    const int64_t size = grouped ? (e + args->groups - 1) / args->groups : e;
    const route_params p = {
        .logits = simt_rows_of(call, MOE_ROUTE_LOGITS),
        .weights = simt_rows_of(call, MOE_ROUTE_WEIGHTS),
        .experts = simt_rows_of(call, MOE_ROUTE_EXPERTS),
        .scores = simt_rows_of(call, MOE_ROUTE_SCORES),
        .bias = simt_present(call, MOE_ROUTE_BIAS) ? call->tensor[MOE_ROUTE_BIAS].data : NULL,
        .tokens = t,
        .group_size = simt_divisor_of(size),
        .logit_type = type == TRINE_F32    ? ROUTE_F32
                      : type == TRINE_BF16 ? ROUTE_BF16
                                           : ROUTE_F16,
        .e = (int32_t)e,
        .k = (int32_t)call->dim[MOE_ROUTE_DIM_K],
        .groups = grouped ? (int32_t)((e + size - 1) / size) : 0,
        .groups_kept = args->groups_kept,
        .scale = args->scale,
        .sigmoid = args->gate == TRINE_GATE_SIGMOID,
        .renormalise = args->renormalise,
    };
    const int tokens = few ? ROUTE_TOKENS : ROUTE_TOKENS_MANY;
    const simt_function function = { .variant = few ? ROUTE_FEW : ROUTE_MANY };
    return simt_launch(call, &function, simt_blocks(t, tokens), tokens * ROUTE_LANES, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MOE_ROUTE_DIM_E, ROUTE_LANES);
    trine_kernel_edge(edges, MOE_ROUTE_DIM_E, ROUTE_LANES * ROUTE_FEW);
    trine_kernel_edge(edges, MOE_ROUTE_DIM_E, ROUTE_LANES * ROUTE_MANY);
    trine_kernel_edge(edges, MOE_ROUTE_DIM_T, ROUTE_TOKENS);
}

SIMT_KERNELS(moe_route) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
