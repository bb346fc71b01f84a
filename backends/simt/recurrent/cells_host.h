/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that recurrent cells share. The file that includes this has CELL_PLACE(), of a name. */
#ifndef TRINE_SIMT_RECURRENT_CELLS_HOST_H
#define TRINE_SIMT_RECURRENT_CELLS_HOST_H

#include "backends/simt/core/host.h"
#include "cells.h"

/* Strides of [b] t [gates] h d, of [s] h d, and of the like. */
static inline cell_tensor cell_tensor_of(const trine_call *call, int tensor, bool gated) {
    const trine_tensor *t = trine_call_given(call, tensor);
    if (t == NULL) return (cell_tensor){ 0 };
    cell_tensor c = { .data = t->data, .batch = t->stride[0], .head = t->stride[t->rank - 2] };
    if (t->rank > 3) c.step = t->stride[1];
    if (gated) c.gate = t->stride[t->rank - 3];
    return c;
}
/* Of h [gates] d d. */
static inline cell_tensor cell_matrices_of(const trine_call *call, int tensor, bool gated) {
    cell_tensor c = cell_tensor_of(call, tensor, false);
    c.gate = gated ? call->tensor[tensor].stride[1] : 0;
    return c;
}
/* Of [gates] h d. */
static inline cell_tensor cell_bias_of(const trine_call *call, int tensor, bool gated) {
    cell_tensor c = cell_tensor_of(call, tensor, false);
    c.gate = gated ? c.batch : 0;
    return c;
}

#define CELL_DIM(name) call->dim[CELL_PLACE(DIM_##name)]

/* Floats of a head of a sequence in the workspace, where it is not held. */
static inline int64_t cell_scratch(int64_t d, int rows) { return d > CELL_HELD ? rows * d : 0; }

#endif
