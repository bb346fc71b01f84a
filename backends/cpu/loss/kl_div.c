/* SPDX-License-Identifier: Apache-2.0 */
/* kl_div on the CPU. */
#include "divergence.h"
#include "spec/places/kl_div.h"

static trine_status launch(const trine_call *call) {
    const trine_kl_div_args *args = call->args;
    const divergence a = {
        .input = &call->tensor[KL_DIV_INPUT],
        .target = &call->tensor[KL_DIV_TARGET],
        .weight = divergence_floats(call, KL_DIV_WEIGHT),
        .loss = call->tensor[KL_DIV_LOSS].data,
        .rows = call->dim[KL_DIV_DIM_R],
        .v = call->dim[KL_DIV_DIM_V],
        .of_input = divergence_kind(args->logits, false),
        .of_target = divergence_kind(args->logits, args->target_probabilities),
        .twice = 2 * args->logit_scale,
    };
    divergence_run(call, &a);
    return TRINE_OK;
}

CPU_KERNELS(kl_div) = {
    { .name = CPU_NAME, .workspace = divergence_workspace, .launch = launch, .edges = divergence_edges }, { 0 }
};
