/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_add_rows on the CPU. */
#include "scatter.h"
#include "spec/places/scatter_add_rows.h"

static size_t workspace(const trine_call *call) {
    return scatter_workspace(call->dim[SCATTER_ADD_ROWS_DIM_P], call->dim[SCATTER_ADD_ROWS_DIM_M]);
}

static trine_status launch(const trine_call *call) {
    const trine_scatter_add_rows_args *args = call->args;
    const bool weighted = call->present >> SCATTER_ADD_ROWS_WEIGHT & 1;
    const scatter s = { .x = &call->tensor[SCATTER_ADD_ROWS_X],
                        .ids = &call->tensor[SCATTER_ADD_ROWS_INDEX],
                        .weight = weighted ? &call->tensor[SCATTER_ADD_ROWS_WEIGHT] : NULL,
                        .y = &call->tensor[SCATTER_ADD_ROWS_Y],
                        .padding = -1,
                        .accumulate = !args->overwrite };
    scatter_run(call, s);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    scatter_edges(edges, SCATTER_ADD_ROWS_DIM_N);
}

CPU_KERNELS(scatter_add_rows) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
