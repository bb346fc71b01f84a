/* SPDX-License-Identifier: Apache-2.0 */
/* slstm on the CPU. */
#include "slstm.h"
#include "spec/places/slstm.h"

#define CELL_PLACE(name) SLSTM_##name

static void cell_states(const trine_call *call, cells *a) {
    a->start[0] = cell_tensor_of(call, SLSTM_H0, false);
    a->start[1] = cell_tensor_of(call, SLSTM_C0, false);
    a->start[2] = cell_tensor_of(call, SLSTM_N0, false);
    a->start[3] = cell_tensor_of(call, SLSTM_M0, false);
    a->last[0] = cell_tensor_of(call, SLSTM_LAST_H, false);
    a->last[1] = cell_tensor_of(call, SLSTM_LAST_C, false);
    a->last[2] = cell_tensor_of(call, SLSTM_LAST_N, false);
    a->last[3] = cell_tensor_of(call, SLSTM_LAST_M, false);
    a->state[1] = cell_tensor_of(call, SLSTM_C, false);
    a->state[2] = cell_tensor_of(call, SLSTM_N, false);
    a->state[3] = cell_tensor_of(call, SLSTM_M, false);
}

#include "forward.h"

CPU_KERNELS(slstm) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
