/* SPDX-License-Identifier: Apache-2.0 */
/* gru_backward on devices: what its host sides share. */
#ifndef TRINE_SIMT_RECURRENT_GRU_BACKWARD_HOST_H
#define TRINE_SIMT_RECURRENT_GRU_BACKWARD_HOST_H

#include "cells_host.h"
#include "spec/places/gru_backward.h"

#define CELL_PLACE(name) GRU_BACKWARD_##name
enum { CELL_INPUTS = 3, CELL_PRODUCTS = 3, CELL_SAVED = 4, CELL_KINDS = 1 };

static void cell_states(const trine_call *call, cell_backward_params *p) {
    p->start[0] = cell_tensor_of(call, GRU_BACKWARD_H0, false);
    p->dlast[0] = cell_tensor_of(call, GRU_BACKWARD_DLAST_H, false);
    p->dstart[0] = cell_tensor_of(call, GRU_BACKWARD_DH0, false);
}

#include "backward_host.h"

#endif
