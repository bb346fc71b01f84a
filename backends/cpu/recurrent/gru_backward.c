/* SPDX-License-Identifier: Apache-2.0 */
/* gru_backward on the CPU. */
#include "gru.h"
#include "spec/places/gru_backward.h"

#define CELL_PLACE(name) GRU_BACKWARD_##name

static void cell_states(const trine_call *call, cells *a) {
    a->start[0] = cell_tensor_of(call, GRU_BACKWARD_H0, false);
    a->dlast[0] = cell_tensor_of(call, GRU_BACKWARD_DLAST_H, false);
    a->dstart[0] = cell_tensor_of(call, GRU_BACKWARD_DH0, false);
}

#include "backward.h"

CPU_KERNELS(gru_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
