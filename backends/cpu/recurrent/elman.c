/* SPDX-License-Identifier: Apache-2.0 */
/* elman on the CPU. */
#include "elman.h"
#include "spec/places/elman.h"

#define CELL_PLACE(name) ELMAN_##name

static void cell_states(const trine_call *call, cells *a) {
    a->start[0] = cell_tensor_of(call, ELMAN_H0, false);
    a->last[0] = cell_tensor_of(call, ELMAN_LAST_H, false);
}

#include "forward.h"

CPU_KERNELS(elman) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
