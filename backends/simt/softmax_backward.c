/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on devices: the host side. */
#include "host.h"
#include "softmax.h"

enum { Y, DY, DX }; /* as in the specification */

static trine_status launch(const trine_call *call) {
    const trine_softmax_backward_args *args = call->args;
    const softmax_backward_params p = {
        .y = simt_rows_of(call, Y),
        .dy = simt_rows_of(call, DY),
        .dx = simt_rows_of(call, DX),
        .rows = call->dim[0] * call->dim[1],
        .s = call->dim[1],
        .n = call->dim[2],
        .scale = args->scale,
        .causal = args->causal,
    };
    return simt_launch_rows(call, p.rows, 2, SIMT_TWO_ROWS, &p, sizeof p);
}

SIMT_KERNELS(softmax_backward) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
