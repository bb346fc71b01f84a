/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather on devices: the host side. */
#include "exchanges.h"
#include "spec/places/all_gather.h"

static trine_status launch(const trine_call *call) {
    return exchange_copies(call, &call->tensor[ALL_GATHER_X], &call->tensor[ALL_GATHER_Y], call->dim[ALL_GATHER_DIM_N],
                           0);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t width = (int64_t)trine_dtype_size(call->type[ALL_GATHER_TYPE_T]);
    exchange_edges(call, edges, ALL_GATHER_DIM_N, EXCHANGE_PACKET / (width < 8 ? width : 8), 1);
}

SIMT_KERNELS(all_gather) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
