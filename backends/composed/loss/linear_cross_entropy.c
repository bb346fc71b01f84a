/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy, made of other ops: where gradients are asked for, three products. */
#include "linear_cross_entropy.h"
#include "spec/places/linear_cross_entropy.h"

static head head_of(const trine_call *call) {
    const trine_linear_cross_entropy_args *args = call->args;
    return (head){
        .call = call,
        .t_symbol = LINEAR_CROSS_ENTROPY_DIM_T,
        .t = call->dim[LINEAR_CROSS_ENTROPY_DIM_T],
        .k = call->dim[LINEAR_CROSS_ENTROPY_DIM_K],
        .v = call->dim[LINEAR_CROSS_ENTROPY_DIM_V],
        .x = &call->tensor[LINEAR_CROSS_ENTROPY_X],
        .weight = &call->tensor[LINEAR_CROSS_ENTROPY_WEIGHT],
        .labels = &call->tensor[LINEAR_CROSS_ENTROPY_LABELS],
        .bias = trine_call_given(call, LINEAR_CROSS_ENTROPY_BIAS),
        .loss = &call->tensor[LINEAR_CROSS_ENTROPY_LOSS],
        .lse = trine_call_given(call, LINEAR_CROSS_ENTROPY_LSE),
        .dloss = trine_call_given(call, LINEAR_CROSS_ENTROPY_DLOSS),
        .dx = trine_call_given(call, LINEAR_CROSS_ENTROPY_DX),
        .dweight = trine_call_given(call, LINEAR_CROSS_ENTROPY_DWEIGHT),
        .dbias = trine_call_given(call, LINEAR_CROSS_ENTROPY_DBIAS),
        .class_weight = trine_call_given(call, LINEAR_CROSS_ENTROPY_CLASS_WEIGHT),
        .label_smoothing = args->label_smoothing,
        .z_loss = args->z_loss,
        .logit_scale = args->logit_scale,
        .ignore_index_set = args->ignore_index_set,
        .ignore_index = args->ignore_index,
    };
}

HEAD_KERNELS(linear_cross_entropy);
