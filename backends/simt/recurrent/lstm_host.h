/* SPDX-License-Identifier: Apache-2.0 */
/* lstm on devices: what its host sides share. */
#ifndef TRINE_SIMT_RECURRENT_LSTM_HOST_H
#define TRINE_SIMT_RECURRENT_LSTM_HOST_H

#include "cells_host.h"
#include "spec/places/lstm.h"

#define CELL_PLACE(name) LSTM_##name
enum { CELL_INPUTS = 4, CELL_PRODUCTS = 4, CELL_SAVED = 4, CELL_KINDS = 2 };

static void cell_states(const trine_call *call, cell_params *p) {
    p->start[0] = cell_tensor_of(call, LSTM_H0, false);
    p->start[1] = cell_tensor_of(call, LSTM_C0, false);
    p->last[0] = cell_tensor_of(call, LSTM_LAST_H, false);
    p->last[1] = cell_tensor_of(call, LSTM_LAST_C, false);
    p->state[1] = cell_tensor_of(call, LSTM_C, false);
}

#include "forward_host.h"

#endif
