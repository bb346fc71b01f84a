/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table in the order of an index, on devices: what the host sides of embedding and of gather_rows share. */
#ifndef TRINE_SIMT_GATHER_HOST_H
#define TRINE_SIMT_GATHER_HOST_H

#include "gather.h"
#include "backends/simt/core/host.h"

enum { GATHER_WHOLE = 16 }; /* bytes of a unit, at most */

static inline trine_status gather_launch(const trine_call *call, const trine_tensor *table, const trine_tensor *ids,
                                         const trine_tensor *y, bool pad, uint32_t missing) {
    const int64_t size = (int64_t)trine_dtype_size(y->dtype), bytes = y->shape[1] * size,
                  from = table->stride[0] * size, to = y->stride[0] * size;
    int64_t unit = GATHER_WHOLE;
    while (((int64_t)(uintptr_t)table->data | (int64_t)(uintptr_t)y->data | bytes | from | to) % unit != 0) unit /= 2;
    const gather_params p = {
        .table = { .data = table->data, .row = from / unit },
        .y = { .data = y->data, .row = to / unit },
        .ids = ids->data,
        .v = table->shape[0],
        .row_units = simt_divisor_of(bytes / unit),
        .units = bytes / unit * y->shape[0],
        .missing = missing,
        .pad = pad,
        .long_ids = ids->dtype == TRINE_I64,
    };
    if (unit == GATHER_WHOLE && p.row_units.by >= SIMT_THREADS)
        return simt_launch(call, &(simt_function){ .step = "row" }, y->shape[0], SIMT_THREADS, &p, sizeof p);
    const simt_function function = { .variant = (int)unit };
    return simt_launch(call, &function, simt_blocks(p.units, SIMT_THREADS * GATHER_UNITS), SIMT_THREADS, &p, sizeof p);
}

/* Of the dimension of rows, and of that along them. */
static inline void gather_edges(trine_kernel_edges *edges, trine_dtype dtype, int rows, int symbol) {
    const int64_t unit = GATHER_WHOLE / (int64_t)trine_dtype_size(dtype);
    trine_kernel_edge(edges, symbol, unit);
    trine_kernel_edge(edges, symbol, SIMT_THREADS * unit);
    trine_kernel_edge(edges, rows, SIMT_THREADS * GATHER_UNITS);
}

#endif
