/* SPDX-License-Identifier: Apache-2.0 */
/* jsd_backward on the CPU. */
#include "divergence.h"
#include "spec/places/jsd_backward.h"

static trine_status launch(const trine_call *call) {
    const trine_jsd_backward_args *args = call->args;
    const divergence a = {
        .input = &call->tensor[JSD_BACKWARD_INPUT],
        .target = &call->tensor[JSD_BACKWARD_TARGET],
        .weight = divergence_floats(call, JSD_BACKWARD_WEIGHT),
        .dinput = &call->tensor[JSD_BACKWARD_DINPUT],
        .dloss = call->tensor[JSD_BACKWARD_DLOSS].data,
        .factor = divergence_factor(args->logits, args->logit_scale, args->beta),
        .rows = call->dim[JSD_BACKWARD_DIM_R],
        .v = call->dim[JSD_BACKWARD_DIM_V],
        .of_input = divergence_kind(args->logits, false),
        .of_target = divergence_kind(args->logits, false),
        .beta = args->beta,
        .twice = 2 * args->logit_scale,
    };
    divergence_run(call, &a);
    return TRINE_OK;
}

CPU_KERNELS(jsd_backward) = {
    { .name = CPU_NAME, .workspace = divergence_workspace, .launch = launch, .edges = divergence_edges }, { 0 }
};
