/* SPDX-License-Identifier: Apache-2.0 */
/* kl_div_backward on the CPU. */
#include "divergence.h"
#include "spec/places/kl_div_backward.h"

static trine_status launch(const trine_call *call) {
    const trine_kl_div_backward_args *args = call->args;
    const divergence a = {
        .input = &call->tensor[KL_DIV_BACKWARD_INPUT],
        .target = &call->tensor[KL_DIV_BACKWARD_TARGET],
        .weight = divergence_floats(call, KL_DIV_BACKWARD_WEIGHT),
        .dinput = &call->tensor[KL_DIV_BACKWARD_DINPUT],
        .dloss = call->tensor[KL_DIV_BACKWARD_DLOSS].data,
        .factor = divergence_factor(args->logits, args->logit_scale, 0),
        .rows = call->dim[KL_DIV_BACKWARD_DIM_R],
        .v = call->dim[KL_DIV_BACKWARD_DIM_V],
        .of_input = divergence_kind(args->logits, false),
        .of_target = divergence_kind(args->logits, args->target_probabilities),
        .twice = 2 * args->logit_scale,
    };
    divergence_run(call, &a);
    return TRINE_OK;
}

CPU_KERNELS(kl_div_backward) = {
    { .name = CPU_NAME, .workspace = divergence_workspace, .launch = launch, .edges = divergence_edges }, { 0 }
};
