/* SPDX-License-Identifier: Apache-2.0 */
/* lstm_backward on devices: what its host sides share. */
#ifndef TRINE_SIMT_RECURRENT_LSTM_BACKWARD_HOST_H
#define TRINE_SIMT_RECURRENT_LSTM_BACKWARD_HOST_H

#include "cells_host.h"
#include "spec/places/lstm_backward.h"

#define CELL_PLACE(name) LSTM_BACKWARD_##name
enum { CELL_INPUTS = 4, CELL_PRODUCTS = 4, CELL_SAVED = 4, CELL_KINDS = 2 };

static void cell_states(const trine_call *call, cell_backward_params *p) {
    p->start[0] = cell_tensor_of(call, LSTM_BACKWARD_H0, false);
    p->start[1] = cell_tensor_of(call, LSTM_BACKWARD_C0, false);
    p->state[1] = cell_tensor_of(call, LSTM_BACKWARD_C, false);
    p->dlast[0] = cell_tensor_of(call, LSTM_BACKWARD_DLAST_H, false);
    p->dlast[1] = cell_tensor_of(call, LSTM_BACKWARD_DLAST_C, false);
    p->dstart[0] = cell_tensor_of(call, LSTM_BACKWARD_DH0, false);
    p->dstart[1] = cell_tensor_of(call, LSTM_BACKWARD_DC0, false);
}

#include "backward_host.h"

#endif
