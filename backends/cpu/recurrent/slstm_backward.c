/* SPDX-License-Identifier: Apache-2.0 */
/* slstm_backward on the CPU. */
#include "slstm.h"
#include "spec/places/slstm_backward.h"

#define CELL_PLACE(name) SLSTM_BACKWARD_##name

static void cell_states(const trine_call *call, cells *a) {
    a->start[0] = cell_tensor_of(call, SLSTM_BACKWARD_H0, false);
    a->start[1] = cell_tensor_of(call, SLSTM_BACKWARD_C0, false);
    a->start[2] = cell_tensor_of(call, SLSTM_BACKWARD_N0, false);
    a->start[3] = cell_tensor_of(call, SLSTM_BACKWARD_M0, false);
    a->state[1] = cell_tensor_of(call, SLSTM_BACKWARD_C, false);
    a->state[2] = cell_tensor_of(call, SLSTM_BACKWARD_N, false);
    a->state[3] = cell_tensor_of(call, SLSTM_BACKWARD_M, false);
    a->dlast[0] = cell_tensor_of(call, SLSTM_BACKWARD_DLAST_H, false);
    a->dstart[0] = cell_tensor_of(call, SLSTM_BACKWARD_DH0, false);
}

#include "backward.h"

CPU_KERNELS(slstm_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
