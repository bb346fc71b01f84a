/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on the CPU: rows are copied. */
#include "gather.h"
#include "spec/places/embedding.h"

static trine_status launch(const trine_call *call) {
    const gather g = { .table = &call->tensor[EMBEDDING_TABLE],
                       .ids = &call->tensor[EMBEDDING_IDS],
                       .y = &call->tensor[EMBEDDING_Y] };
    const trine_status status = ids_check(call, g.ids, g.table->shape[0]);
    if (status == TRINE_OK) gather_run(call, g);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    gather_edges(call, edges, call->tensor[EMBEDDING_Y].dtype, EMBEDDING_DIM_N);
}

CPU_KERNELS(embedding) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
