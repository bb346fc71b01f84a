/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy, made of other ops: where gradients are asked for, three products. */
#include "linear_cross_entropy.h"
#include "spec/places/linear_cross_entropy.h"

static const trine_tensor *given(const trine_call *call, int tensor) {
    return call->present >> tensor & 1 ? &call->tensor[tensor] : NULL;
}

static head head_of(const trine_call *call) {
    const trine_linear_cross_entropy_args *args = call->args;
    return (head){
        .call = call,
        .t = call->dim[LINEAR_CROSS_ENTROPY_DIM_T],
        .k = call->dim[LINEAR_CROSS_ENTROPY_DIM_K],
        .v = call->dim[LINEAR_CROSS_ENTROPY_DIM_V],
        .x = &call->tensor[LINEAR_CROSS_ENTROPY_X],
        .weight = &call->tensor[LINEAR_CROSS_ENTROPY_WEIGHT],
        .labels = &call->tensor[LINEAR_CROSS_ENTROPY_LABELS],
        .bias = given(call, LINEAR_CROSS_ENTROPY_BIAS),
        .loss = &call->tensor[LINEAR_CROSS_ENTROPY_LOSS],
        .lse = given(call, LINEAR_CROSS_ENTROPY_LSE),
        .dloss = given(call, LINEAR_CROSS_ENTROPY_DLOSS),
        .dx = given(call, LINEAR_CROSS_ENTROPY_DX),
        .dweight = given(call, LINEAR_CROSS_ENTROPY_DWEIGHT),
        .dbias = given(call, LINEAR_CROSS_ENTROPY_DBIAS),
        .label_smoothing = args->label_smoothing,
        .z_loss = args->z_loss,
        .logit_scale = args->logit_scale,
        .ignore_index_set = args->ignore_index_set,
        .ignore_index = args->ignore_index,
    };
}

static const char *refuse(const trine_call *call) {
    head h = head_of(call);
    return head_refuse(&h);
}

static size_t workspace(const trine_call *call) {
    head h = head_of(call);
    return head_workspace(&h);
}

static trine_status launch(const trine_call *call) {
    head h = head_of(call);
    return head_launch(&h);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    head h = head_of(call);
    head_edges(&h, edges, LINEAR_CROSS_ENTROPY_DIM_T);
}

const trine_kernel trine_linear_cross_entropy_composed[] = {
    { .name = "composed", .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges },
    { .name = NULL },
};
