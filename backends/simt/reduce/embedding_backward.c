/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward on devices: the host side. */
#include "scatter_host.h"
#include "spec/places/embedding_backward.h"

static const scatter_tensors tensors = { EMBEDDING_BACKWARD_DY, EMBEDDING_BACKWARD_IDS, -1, EMBEDDING_BACKWARD_DTABLE };

static const char *refuse(const trine_call *call) { return scatter_refuse(call, &tensors); }

static size_t workspace(const trine_call *call) { return scatter_workspace(call, &tensors); }

static trine_status launch(const trine_call *call) {
    const trine_embedding_backward_args *args = call->args;
    return scatter_launch(call, &tensors, args->padding_index_set ? args->padding_index : -1, args->accumulate);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    scatter_edges(edges, EMBEDDING_BACKWARD_DIM_N, EMBEDDING_BACKWARD_DIM_T, EMBEDDING_BACKWARD_DIM_V);
}

SIMT_KERNELS(embedding_backward) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
