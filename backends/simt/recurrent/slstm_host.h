/* SPDX-License-Identifier: Apache-2.0 */
/* slstm on devices: what its host sides share. */
#ifndef TRINE_SIMT_RECURRENT_SLSTM_HOST_H
#define TRINE_SIMT_RECURRENT_SLSTM_HOST_H

#include "cells_host.h"
#include "spec/places/slstm.h"

#define CELL_PLACE(name) SLSTM_##name
enum { CELL_INPUTS = 4, CELL_PRODUCTS = 4, CELL_SAVED = 4, CELL_KINDS = 4 };

static void cell_states(const trine_call *call, cell_params *p) {
    p->start[0] = cell_tensor_of(call, SLSTM_H0, false);
    p->start[1] = cell_tensor_of(call, SLSTM_C0, false);
    p->start[2] = cell_tensor_of(call, SLSTM_N0, false);
    p->start[3] = cell_tensor_of(call, SLSTM_M0, false);
    p->last[0] = cell_tensor_of(call, SLSTM_LAST_H, false);
    p->last[1] = cell_tensor_of(call, SLSTM_LAST_C, false);
    p->last[2] = cell_tensor_of(call, SLSTM_LAST_N, false);
    p->last[3] = cell_tensor_of(call, SLSTM_LAST_M, false);
    p->state[1] = cell_tensor_of(call, SLSTM_C, false);
    p->state[2] = cell_tensor_of(call, SLSTM_N, false);
    p->state[3] = cell_tensor_of(call, SLSTM_M, false);
}

#include "forward_host.h"

#endif
