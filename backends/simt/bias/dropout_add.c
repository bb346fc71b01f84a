/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_add on devices: the host side. */
#include "bias_host.h"

static trine_status launch(const trine_call *call) {
    const trine_dropout_add_args *args = call->args;
    const trine_tensor *philox = trine_call_given(call, DROPOUT_ADD_PHILOX);
    const dropout_add_params p = { .columns = bias_columns_of(call, -1),
                                   .x = simt_rows_of(call, DROPOUT_ADD_X),
                                   .bias = simt_rows_of(call, DROPOUT_ADD_BIAS),
                                   .residual = simt_rows_of(call, DROPOUT_ADD_RESIDUAL),
                                   .y = simt_rows_of(call, DROPOUT_ADD_Y),
                                   .dropout = simt_dropout_of(args->p, args->seed, args->offset),
                                   .philox = philox ? philox->data : NULL,
                                   .f32_bias = bias_f32(call) };
    return bias_launch(call, philox ? "told" : NULL, &p.columns, &p, sizeof p);
}

SIMT_KERNELS(dropout_add) = { { .name = SIMT_NAME, .launch = launch, .edges = bias_edges }, { 0 } };
