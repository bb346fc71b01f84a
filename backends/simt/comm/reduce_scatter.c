/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter on devices: the host side. */
#include "exchanges.h"
#include "spec/places/reduce_scatter.h"

static trine_status launch(const trine_call *call) {
    const trine_reduce_scatter_args *args = call->args;
    return exchange_sums(call, NULL, &call->tensor[REDUCE_SCATTER_X], &call->tensor[REDUCE_SCATTER_Y],
                         call->dim[REDUCE_SCATTER_DIM_N], args->kind, 1);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    exchange_edges(call, edges, REDUCE_SCATTER_DIM_N,
                   EXCHANGE_PACKET / (int64_t)trine_dtype_size(call->type[REDUCE_SCATTER_TYPE_T]), 1);
}

SIMT_KERNELS(reduce_scatter) = { { .name = SIMT_NAME, .launch = launch, .edges = edges, .same = true }, { 0 } };
