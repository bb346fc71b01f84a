/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cross_entropy_backward, made of other ops: the logits once more, and the products of their gradient. */
#include "linear_cross_entropy.h"
#include "spec/places/linear_cross_entropy_backward.h"

static head head_of(const trine_call *call) {
    const trine_linear_cross_entropy_backward_args *args = call->args;
    return (head){
        .call = call,
        .t_symbol = LINEAR_CROSS_ENTROPY_BACKWARD_DIM_T,
        .t = call->dim[LINEAR_CROSS_ENTROPY_BACKWARD_DIM_T],
        .k = call->dim[LINEAR_CROSS_ENTROPY_BACKWARD_DIM_K],
        .v = call->dim[LINEAR_CROSS_ENTROPY_BACKWARD_DIM_V],
        .x = &call->tensor[LINEAR_CROSS_ENTROPY_BACKWARD_X],
        .weight = &call->tensor[LINEAR_CROSS_ENTROPY_BACKWARD_WEIGHT],
        .labels = &call->tensor[LINEAR_CROSS_ENTROPY_BACKWARD_LABELS],
        .bias = trine_call_given(call, LINEAR_CROSS_ENTROPY_BACKWARD_BIAS),
        .lse = &call->tensor[LINEAR_CROSS_ENTROPY_BACKWARD_LSE],
        .dloss = &call->tensor[LINEAR_CROSS_ENTROPY_BACKWARD_DLOSS],
        .backward = true,
        .dx = trine_call_given(call, LINEAR_CROSS_ENTROPY_BACKWARD_DX),
        .dweight = trine_call_given(call, LINEAR_CROSS_ENTROPY_BACKWARD_DWEIGHT),
        .dbias = trine_call_given(call, LINEAR_CROSS_ENTROPY_BACKWARD_DBIAS),
        .class_weight = trine_call_given(call, LINEAR_CROSS_ENTROPY_BACKWARD_CLASS_WEIGHT),
        .label_smoothing = args->label_smoothing,
        .z_loss = args->z_loss,
        .logit_scale = args->logit_scale,
        .ignore_index_set = args->ignore_index_set,
        .ignore_index = args->ignore_index,
    };
}

HEAD_KERNELS(linear_cross_entropy_backward);
