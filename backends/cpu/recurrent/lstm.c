/* SPDX-License-Identifier: Apache-2.0 */
/* lstm on the CPU. */
#include "lstm.h"
#include "spec/places/lstm.h"

#define CELL_PLACE(name) LSTM_##name

static void cell_states(const trine_call *call, cells *a) {
    a->start[0] = cell_tensor_of(call, LSTM_H0, false);
    a->start[1] = cell_tensor_of(call, LSTM_C0, false);
    a->last[0] = cell_tensor_of(call, LSTM_LAST_H, false);
    a->last[1] = cell_tensor_of(call, LSTM_LAST_C, false);
    a->state[1] = cell_tensor_of(call, LSTM_C, false);
}

#include "forward.h"

CPU_KERNELS(lstm) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
