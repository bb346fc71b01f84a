/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_bias on devices: the host side. */
#include "bias_host.h"

static trine_status launch(const trine_call *call) {
    const trine_gelu_bias_args *args = call->args;
    const gelu_bias_params p = { .columns = bias_columns_of(call, -1),
                                 .x = simt_rows_of(call, GELU_BIAS_X),
                                 .bias = simt_rows_of(call, GELU_BIAS_BIAS),
                                 .y = simt_rows_of(call, GELU_BIAS_Y),
                                 .form = args->form,
                                 .f32_bias = bias_f32(call) };
    return bias_launch(call, NULL, &p.columns, &p, sizeof p);
}

SIMT_KERNELS(gelu_bias) = { { .name = SIMT_NAME, .launch = launch, .edges = bias_edges }, { 0 } };
