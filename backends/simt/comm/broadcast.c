/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast on devices: the host side. */
#include "exchanges.h"
#include "spec/places/broadcast.h"

static trine_status launch(const trine_call *call) {
    const trine_broadcast_args *args = call->args;
    return exchange_copies(call, &call->tensor[BROADCAST_X], &call->tensor[BROADCAST_Y], call->dim[BROADCAST_DIM_N],
                           args->root);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t width = (int64_t)trine_dtype_size(call->type[BROADCAST_TYPE_T]);
    exchange_edges(call, edges, BROADCAST_DIM_N, EXCHANGE_PACKET / (width < 8 ? width : 8), 1);
}

SIMT_KERNELS(broadcast) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
