/* SPDX-License-Identifier: Apache-2.0 */
/* embedding on devices: the host side. */
#include "embedding.h"
#include "backends/simt/core/host.h"
#include "spec/places/embedding.h"

enum { WHOLE = 16 }; /* bytes of a unit, at most */

static trine_status launch(const trine_call *call) {
    const trine_tensor *table = &call->tensor[EMBEDDING_TABLE], *ids = &call->tensor[EMBEDDING_IDS],
                       *y = &call->tensor[EMBEDDING_Y];
    const int64_t size = (int64_t)trine_dtype_size(y->dtype), bytes = y->shape[1] * size,
                  from = table->stride[0] * size, to = y->stride[0] * size;
    int64_t unit = WHOLE;
    while (((int64_t)(uintptr_t)table->data | (int64_t)(uintptr_t)y->data | bytes | from | to) % unit != 0) unit /= 2;
    const embedding_params p = {
        .table = { .data = table->data, .row = from / unit },
        .y = { .data = y->data, .row = to / unit },
        .ids = ids->data,
        .v = table->shape[0],
        .row_units = simt_divisor_of(bytes / unit),
        .units = bytes / unit * y->shape[0],
        .long_ids = ids->dtype == TRINE_I64,
    };
    if (unit == WHOLE && p.row_units.by >= SIMT_THREADS)
        return simt_launch(call, &(simt_function){ .step = "row" }, y->shape[0], SIMT_THREADS, &p, sizeof p);
    const simt_function function = { .variant = (int)unit };
    return simt_launch(call, &function, simt_blocks(p.units, SIMT_THREADS * EMBEDDING_UNITS), SIMT_THREADS, &p,
                       sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t unit = WHOLE / (int64_t)trine_dtype_size(call->tensor[EMBEDDING_Y].dtype);
    trine_kernel_edge(edges, EMBEDDING_DIM_N, unit);
    trine_kernel_edge(edges, EMBEDDING_DIM_N, SIMT_THREADS * unit);
    trine_kernel_edge(edges, EMBEDDING_DIM_T, SIMT_THREADS * EMBEDDING_UNITS);
}

SIMT_KERNELS(embedding) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
