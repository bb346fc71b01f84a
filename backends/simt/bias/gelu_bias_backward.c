/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_bias_backward on devices: the host side. */
#include "bias_host.h"

static size_t workspace(const trine_call *call) { return bias_workspace(call, GELU_BIAS_BACKWARD_DBIAS); }

static trine_status launch(const trine_call *call) {
    const trine_gelu_bias_backward_args *args = call->args;
    const gelu_bias_backward_params p = { .columns = bias_columns_of(call, GELU_BIAS_BACKWARD_DBIAS),
                                          .dy = simt_rows_of(call, GELU_BIAS_BACKWARD_DY),
                                          .x = simt_rows_of(call, GELU_BIAS_BACKWARD_X),
                                          .bias = simt_rows_of(call, GELU_BIAS_BACKWARD_BIAS),
                                          .dx = simt_rows_of(call, GELU_BIAS_BACKWARD_DX),
                                          .form = args->form,
                                          .f32_bias = bias_f32(call) };
    return bias_launch(call, NULL, &p.columns, &p, sizeof p);
}

SIMT_KERNELS(gelu_bias_backward) = {
    { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = bias_edges }, { 0 }
};
