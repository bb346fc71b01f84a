/* SPDX-License-Identifier: Apache-2.0 */
/* elman_backward on the CPU. */
#include "elman.h"
#include "spec/places/elman_backward.h"

#define CELL_PLACE(name) ELMAN_BACKWARD_##name

static void cell_states(const trine_call *call, cells *a) {
    a->start[0] = cell_tensor_of(call, ELMAN_BACKWARD_H0, false);
    a->dlast[0] = cell_tensor_of(call, ELMAN_BACKWARD_DLAST_H, false);
    a->dstart[0] = cell_tensor_of(call, ELMAN_BACKWARD_DH0, false);
}

#include "backward.h"

CPU_KERNELS(elman_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
