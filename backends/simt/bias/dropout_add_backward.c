/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_add_backward on devices: the host side. */
#include "bias_host.h"

static size_t workspace(const trine_call *call) { return bias_workspace(call, DROPOUT_ADD_BACKWARD_DBIAS); }

static trine_status launch(const trine_call *call) {
    const trine_dropout_add_backward_args *args = call->args;
    const trine_tensor *philox = trine_call_given(call, DROPOUT_ADD_BACKWARD_PHILOX);
    const dropout_add_backward_params p = { .columns = bias_columns_of(call, DROPOUT_ADD_BACKWARD_DBIAS),
                                            .dy = simt_rows_of(call, DROPOUT_ADD_BACKWARD_DY),
                                            .dx = simt_rows_of(call, DROPOUT_ADD_BACKWARD_DX),
                                            .dresidual = simt_rows_of(call, DROPOUT_ADD_BACKWARD_DRESIDUAL),
                                            .dropout = simt_dropout_of(args->p, args->seed, args->offset),
                                            .philox = philox ? philox->data : NULL };
    return bias_launch(call, philox ? "told" : NULL, &p.columns, &p, sizeof p);
}

SIMT_KERNELS(dropout_add_backward) = {
    { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = bias_edges }, { 0 }
};
