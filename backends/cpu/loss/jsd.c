/* SPDX-License-Identifier: Apache-2.0 */
/* jsd on the CPU. */
#include "divergence.h"
#include "spec/places/jsd.h"

static trine_status launch(const trine_call *call) {
    const trine_jsd_args *args = call->args;
    const divergence a = {
        .input = &call->tensor[JSD_INPUT],
        .target = &call->tensor[JSD_TARGET],
        .weight = divergence_floats(call, JSD_WEIGHT),
        .loss = call->tensor[JSD_LOSS].data,
        .rows = call->dim[JSD_DIM_R],
        .v = call->dim[JSD_DIM_V],
        .of_input = divergence_kind(args->logits, false),
        .of_target = divergence_kind(args->logits, false),
        .beta = args->beta,
        .twice = 2 * args->logit_scale,
    };
    divergence_run(call, &a);
    return TRINE_OK;
}

CPU_KERNELS(jsd) = {
    { .name = CPU_NAME, .workspace = divergence_workspace, .launch = launch, .edges = divergence_edges }, { 0 }
};
