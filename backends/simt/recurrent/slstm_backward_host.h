/* SPDX-License-Identifier: Apache-2.0 */
/* slstm_backward on devices: what its host sides share. */
#ifndef TRINE_SIMT_RECURRENT_SLSTM_BACKWARD_HOST_H
#define TRINE_SIMT_RECURRENT_SLSTM_BACKWARD_HOST_H

#include "cells_host.h"
#include "spec/places/slstm_backward.h"

#define CELL_PLACE(name) SLSTM_BACKWARD_##name
enum { CELL_INPUTS = 4, CELL_PRODUCTS = 4, CELL_SAVED = 4, CELL_KINDS = 4 };

static void cell_states(const trine_call *call, cell_backward_params *p) {
    p->start[0] = cell_tensor_of(call, SLSTM_BACKWARD_H0, false);
    p->start[1] = cell_tensor_of(call, SLSTM_BACKWARD_C0, false);
    p->start[2] = cell_tensor_of(call, SLSTM_BACKWARD_N0, false);
    p->start[3] = cell_tensor_of(call, SLSTM_BACKWARD_M0, false);
    p->state[1] = cell_tensor_of(call, SLSTM_BACKWARD_C, false);
    p->state[2] = cell_tensor_of(call, SLSTM_BACKWARD_N, false);
    p->state[3] = cell_tensor_of(call, SLSTM_BACKWARD_M, false);
    p->dlast[0] = cell_tensor_of(call, SLSTM_BACKWARD_DLAST_H, false);
    p->dstart[0] = cell_tensor_of(call, SLSTM_BACKWARD_DH0, false);
}

#include "backward_host.h"

#endif
