/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all on devices: the host side. */
#include "exchanges.h"
#include "spec/places/all_to_all.h"

static trine_status launch(const trine_call *call) {
    return exchange_copies(call, &call->tensor[ALL_TO_ALL_X], &call->tensor[ALL_TO_ALL_Y], call->dim[ALL_TO_ALL_DIM_N],
                           0);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t width = (int64_t)trine_dtype_size(call->type[ALL_TO_ALL_TYPE_T]);
    exchange_edges(call, edges, ALL_TO_ALL_DIM_N, EXCHANGE_PACKET / (width < 8 ? width : 8), 1);
}

SIMT_KERNELS(all_to_all) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
