/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_masked_backward on devices: the host side. */
#include "scores_host.h"
#include "spec/alike.h"
#include "spec/places/softmax_masked_backward.h"

TRINE_ALIKE(SOFTMAX_MASKED_BACKWARD_TYPE_T, SIMT_FIRST_TYPE); /* entries are named by it */

static trine_status launch(const trine_call *call) {
    const trine_softmax_masked_backward_args *args = call->args;
    const int64_t *dim = call->dim;
    const simt_ahead_two none = { { { 0 } } };
    const softmax_masked_backward_params p = {
        .shape =
            scores_shape_of(dim[SOFTMAX_MASKED_BACKWARD_DIM_B], dim[SOFTMAX_MASKED_BACKWARD_DIM_H],
                            dim[SOFTMAX_MASKED_BACKWARD_DIM_SQ], dim[SOFTMAX_MASKED_BACKWARD_DIM_SK], args->causal),
        .y = scores_tensor_of(call, SOFTMAX_MASKED_BACKWARD_Y),
        .dy = scores_tensor_of(call, SOFTMAX_MASKED_BACKWARD_DY),
        .dx = scores_tensor_of(call, SOFTMAX_MASKED_BACKWARD_DX),
        .dbias = scores_tensor_of(call, SOFTMAX_MASKED_BACKWARD_DBIAS),
        .scale = args->scale,
        .f32_bias = call->type[SOFTMAX_MASKED_BACKWARD_TYPE_B] == TRINE_F32,
        .ahead = args->causal ? none : simt_ahead_of_two(call, SOFTMAX_MASKED_BACKWARD_Y, SOFTMAX_MASKED_BACKWARD_DY),
    };
    return simt_launch_rows(call, NULL, p.shape.rows, SOFTMAX_MASKED_BACKWARD_DIM_SK, SIMT_TWO_ROWS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    simt_row_edges(edges, SOFTMAX_MASKED_BACKWARD_DIM_SQ, SOFTMAX_MASKED_BACKWARD_DIM_SK, SIMT_TWO_ROWS);
}

SIMT_KERNELS(softmax_masked_backward) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
