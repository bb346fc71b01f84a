/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_masked on devices: the host side. */
#include "scores_host.h"
#include "softmax_launch.h"
#include "spec/places/softmax_masked.h"

TRINE_ALIKE(SOFTMAX_MASKED_TYPE_T, SIMT_FIRST_TYPE); /* entries are named by it */

static trine_status launch(const trine_call *call) {
    const trine_softmax_masked_args *args = call->args;
    const int64_t *dim = call->dim;
    const simt_ahead none = { 0 };
    softmax_masked_params p = {
        .shape = scores_shape_of(dim[SOFTMAX_MASKED_DIM_B], dim[SOFTMAX_MASKED_DIM_H], dim[SOFTMAX_MASKED_DIM_SQ],
                                 dim[SOFTMAX_MASKED_DIM_SK], args->causal),
        .x = scores_tensor_of(call, SOFTMAX_MASKED_X),
        .mask = scores_tensor_of(call, SOFTMAX_MASKED_MASK),
        .bias = scores_tensor_of(call, SOFTMAX_MASKED_BIAS),
        .y = scores_tensor_of(call, SOFTMAX_MASKED_Y),
        .f = args->scale,
        .spread = (float)0x1.71547652b82fep0, /* log2(e) */
        .f32_bias = call->type[SOFTMAX_MASKED_TYPE_B] == TRINE_F32,
        /* a mask hides much of what would be prefetched */
        .ahead = args->causal ? none : simt_ahead_of(call, SOFTMAX_MASKED_X),
    };
    if (!p.bias.data) softmax_scale_of(args->scale, &p.f, &p.spread);
    return simt_launch_rows(call, NULL, p.shape.rows, SOFTMAX_MASKED_DIM_SK, SIMT_ONE_ROW, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    simt_row_edges(edges, SOFTMAX_MASKED_DIM_SQ, SOFTMAX_MASKED_DIM_SK, SIMT_ONE_ROW);
}

SIMT_KERNELS(softmax_masked) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
