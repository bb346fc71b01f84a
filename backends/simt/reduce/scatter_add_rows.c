/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_add_rows on devices: the host side. */
#include "scatter_host.h"
#include "spec/places/scatter_add_rows.h"

static const scatter_tensors tensors = { SCATTER_ADD_ROWS_X, SCATTER_ADD_ROWS_INDEX, SCATTER_ADD_ROWS_WEIGHT,
                                         SCATTER_ADD_ROWS_Y };

static const char *refuse(const trine_call *call) { return scatter_refuse(call, &tensors); }

static size_t workspace(const trine_call *call) { return scatter_workspace(call, &tensors); }

static trine_status launch(const trine_call *call) {
    const trine_scatter_add_rows_args *args = call->args;
    return scatter_launch(call, &tensors, -1, !args->overwrite);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    scatter_edges(edges, SCATTER_ADD_ROWS_DIM_N, SCATTER_ADD_ROWS_DIM_P, SCATTER_ADD_ROWS_DIM_M);
}

SIMT_KERNELS(scatter_add_rows) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
