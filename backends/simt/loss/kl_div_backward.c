/* SPDX-License-Identifier: Apache-2.0 */
/* kl_div_backward on devices: the host side. */
#include "divergence_host.h"
#include "spec/places/kl_div_backward.h"

static trine_status launch(const trine_call *call) {
    const trine_kl_div_backward_args *args = call->args;
    const divergence_params p = {
        .input = simt_rows_of(call, KL_DIV_BACKWARD_INPUT),
        .target = simt_rows_of(call, KL_DIV_BACKWARD_TARGET),
        .weight = divergence_floats(call, KL_DIV_BACKWARD_WEIGHT),
        .dinput = simt_rows_of(call, KL_DIV_BACKWARD_DINPUT),
        .dloss = call->tensor[KL_DIV_BACKWARD_DLOSS].data,
        .factor = divergence_factor(args->logits, args->logit_scale, 0),
        .rows = call->dim[KL_DIV_BACKWARD_DIM_R],
        .v = call->dim[KL_DIV_BACKWARD_DIM_V],
        .of_input = divergence_kind(args->logits, false),
        .of_target = divergence_kind(args->logits, args->target_probabilities),
        .twice = 2 * args->logit_scale,
    };
    return divergence_launch(call, &p, call->type[KL_DIV_BACKWARD_TYPE_T]);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    divergence_edges(edges, KL_DIV_BACKWARD_DIM_V);
}

SIMT_KERNELS(kl_div_backward) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
