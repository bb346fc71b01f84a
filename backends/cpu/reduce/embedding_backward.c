/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward on the CPU. */
#include "scatter.h"
#include "spec/places/embedding_backward.h"

static size_t workspace(const trine_call *call) {
    return scatter_workspace(call->tensor[EMBEDDING_BACKWARD_IDS].shape[0],
                             call->tensor[EMBEDDING_BACKWARD_DTABLE].shape[0]);
}

static trine_status launch(const trine_call *call) {
    const trine_embedding_backward_args *args = call->args;
    const scatter s = { .x = &call->tensor[EMBEDDING_BACKWARD_DY],
                        .ids = &call->tensor[EMBEDDING_BACKWARD_IDS],
                        .y = &call->tensor[EMBEDDING_BACKWARD_DTABLE],
                        .padding = args->padding_index_set ? args->padding_index : -1,
                        .accumulate = args->accumulate };
    const trine_status status = ids_check(call, s.ids, s.y->shape[0]);
    if (status == TRINE_OK) scatter_run(call, s);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    scatter_edges(edges, EMBEDDING_BACKWARD_DIM_N);
}

CPU_KERNELS(embedding_backward) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
