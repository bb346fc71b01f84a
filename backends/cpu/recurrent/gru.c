/* SPDX-License-Identifier: Apache-2.0 */
/* gru on the CPU. */
#include "gru.h"
#include "spec/places/gru.h"

#define CELL_PLACE(name) GRU_##name

static void cell_states(const trine_call *call, cells *a) {
    a->start[0] = cell_tensor_of(call, GRU_H0, false);
    a->last[0] = cell_tensor_of(call, GRU_LAST_H, false);
}

#include "forward.h"

CPU_KERNELS(gru) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
