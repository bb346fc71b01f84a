/* SPDX-License-Identifier: Apache-2.0 */
/* elman_backward on devices: what its host sides share. */
#ifndef TRINE_SIMT_RECURRENT_ELMAN_BACKWARD_HOST_H
#define TRINE_SIMT_RECURRENT_ELMAN_BACKWARD_HOST_H

#include "cells_host.h"
#include "spec/places/elman_backward.h"

#define CELL_PLACE(name) ELMAN_BACKWARD_##name
enum { CELL_INPUTS = 1, CELL_PRODUCTS = 1, CELL_SAVED = 1, CELL_KINDS = 1 };

static void cell_states(const trine_call *call, cell_backward_params *p) {
    p->start[0] = cell_tensor_of(call, ELMAN_BACKWARD_H0, false);
    p->dlast[0] = cell_tensor_of(call, ELMAN_BACKWARD_DLAST_H, false);
    p->dstart[0] = cell_tensor_of(call, ELMAN_BACKWARD_DH0, false);
}

#include "backward_host.h"

#endif
