/* SPDX-License-Identifier: Apache-2.0 */
/* gru on devices: what its host sides share. */
#ifndef TRINE_SIMT_RECURRENT_GRU_HOST_H
#define TRINE_SIMT_RECURRENT_GRU_HOST_H

#include "cells_host.h"
#include "spec/places/gru.h"

#define CELL_PLACE(name) GRU_##name
enum { CELL_INPUTS = 3, CELL_PRODUCTS = 3, CELL_SAVED = 4, CELL_KINDS = 1 };

static void cell_states(const trine_call *call, cell_params *p) {
    p->start[0] = cell_tensor_of(call, GRU_H0, false);
    p->last[0] = cell_tensor_of(call, GRU_LAST_H, false);
}

#include "forward_host.h"

#endif
