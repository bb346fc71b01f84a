/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rows on devices: the host side. */
#include "gather_host.h"
#include "spec/places/gather_rows.h"

static trine_status launch(const trine_call *call) {
    const trine_gather_rows_args *args = call->args;
    const trine_dtype T = call->type[GATHER_ROWS_TYPE_T];
    const bool integers = T == TRINE_I8 || T == TRINE_U8 || T == TRINE_I32;
    return gather_launch(call, &call->tensor[GATHER_ROWS_X], &call->tensor[GATHER_ROWS_INDEX],
                         &call->tensor[GATHER_ROWS_Y], args->pad, integers ? 0 : ~0u);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    gather_edges(edges, call->tensor[GATHER_ROWS_Y].dtype, GATHER_ROWS_DIM_P, GATHER_ROWS_DIM_N);
}

SIMT_KERNELS(gather_rows) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
