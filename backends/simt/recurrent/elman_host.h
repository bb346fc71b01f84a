/* SPDX-License-Identifier: Apache-2.0 */
/* elman on devices: what its host sides share. */
#ifndef TRINE_SIMT_RECURRENT_ELMAN_HOST_H
#define TRINE_SIMT_RECURRENT_ELMAN_HOST_H

#include "cells_host.h"
#include "spec/places/elman.h"

#define CELL_PLACE(name) ELMAN_##name
enum { CELL_INPUTS = 1, CELL_PRODUCTS = 1, CELL_SAVED = 1, CELL_KINDS = 1 };

static void cell_states(const trine_call *call, cell_params *p) {
    p->start[0] = cell_tensor_of(call, ELMAN_H0, false);
    p->last[0] = cell_tensor_of(call, ELMAN_LAST_H, false);
}

#include "forward_host.h"

#endif
