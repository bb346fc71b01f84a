/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on devices: the host side. */
#include "gather_host.h"
#include "spec/places/embedding.h"

static trine_status launch(const trine_call *call) {
    return gather_launch(call, &call->tensor[EMBEDDING_TABLE], &call->tensor[EMBEDDING_IDS], &call->tensor[EMBEDDING_Y],
                         false, ~0u);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    gather_edges(edges, call->tensor[EMBEDDING_Y].dtype, EMBEDDING_DIM_T, EMBEDDING_DIM_N);
}

SIMT_KERNELS(embedding) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
