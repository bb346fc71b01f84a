/* SPDX-License-Identifier: Apache-2.0 */
/* jsd_backward on devices: the host side. */
#include "divergence_host.h"
#include "spec/places/jsd_backward.h"

static trine_status launch(const trine_call *call) {
    const trine_jsd_backward_args *args = call->args;
    const divergence_params p = {
        .input = simt_rows_of(call, JSD_BACKWARD_INPUT),
        .target = simt_rows_of(call, JSD_BACKWARD_TARGET),
        .weight = divergence_floats(call, JSD_BACKWARD_WEIGHT),
        .dinput = simt_rows_of(call, JSD_BACKWARD_DINPUT),
        .dloss = call->tensor[JSD_BACKWARD_DLOSS].data,
        .factor = divergence_factor(args->logits, args->logit_scale, args->beta),
        .rows = call->dim[JSD_BACKWARD_DIM_R],
        .v = call->dim[JSD_BACKWARD_DIM_V],
        .of_input = divergence_kind(args->logits, false),
        .of_target = divergence_kind(args->logits, false),
        .beta = args->beta,
        .twice = 2 * args->logit_scale,
    };
    return divergence_launch(call, &p, call->type[JSD_BACKWARD_TYPE_T]);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    divergence_edges(edges, JSD_BACKWARD_DIM_V);
}

SIMT_KERNELS(jsd_backward) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
