/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rows on the CPU: rows are copied. */
#include "gather.h"
#include "spec/places/gather_rows.h"

static trine_status launch(const trine_call *call) {
    const trine_gather_rows_args *args = call->args;
    const trine_dtype T = call->type[GATHER_ROWS_TYPE_T];
    const bool integers = T == TRINE_I8 || T == TRINE_U8 || T == TRINE_I32;
    const gather g = { .table = &call->tensor[GATHER_ROWS_X],
                       .ids = &call->tensor[GATHER_ROWS_INDEX],
                       .y = &call->tensor[GATHER_ROWS_Y],
                       .missing = integers ? 0 : 0xff,
                       .pad = args->pad };
    gather_run(call, g);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    gather_edges(call, edges, call->tensor[GATHER_ROWS_Y].dtype, GATHER_ROWS_DIM_N);
}

CPU_KERNELS(gather_rows) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
