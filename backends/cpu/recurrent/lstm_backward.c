/* SPDX-License-Identifier: Apache-2.0 */
/* lstm_backward on the CPU. */
#include "lstm.h"
#include "spec/places/lstm_backward.h"

#define CELL_PLACE(name) LSTM_BACKWARD_##name

static void cell_states(const trine_call *call, cells *a) {
    a->start[0] = cell_tensor_of(call, LSTM_BACKWARD_H0, false);
    a->start[1] = cell_tensor_of(call, LSTM_BACKWARD_C0, false);
    a->state[1] = cell_tensor_of(call, LSTM_BACKWARD_C, false);
    a->dlast[0] = cell_tensor_of(call, LSTM_BACKWARD_DLAST_H, false);
    a->dlast[1] = cell_tensor_of(call, LSTM_BACKWARD_DLAST_C, false);
    a->dstart[0] = cell_tensor_of(call, LSTM_BACKWARD_DH0, false);
    a->dstart[1] = cell_tensor_of(call, LSTM_BACKWARD_DC0, false);
}

#include "backward.h"

CPU_KERNELS(lstm_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
