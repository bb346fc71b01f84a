/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of elman on the CPU. */
#ifndef TRINE_CPU_RECURRENT_ELMAN_H
#define TRINE_CPU_RECURRENT_ELMAN_H

#include "cells.h"

enum { CELL_INPUTS = 1, CELL_PRODUCTS = 1, CELL_SAVED = 1, CELL_KINDS = 1, CELL_GRADIENTS = 1 };
static const int cell_product_row[CELL_PRODUCTS] CELL_UNUSED = { 0 };

INLINE void cell_gates(const vf *wx, const vf *product, const vf *bias, vf *g) { g[0] = wx[0] + product[0] + bias[0]; }

INLINE void cell_next(const vf *g, vf *s) { s[0] = vtanh(g[0]); }

INLINE void cell_back(const vf *g, const vf *before, const vf *after, vf *ds, vf *dg) {
    const vf y = vtanh(g[0]);
    (void)before, (void)after;
    dg[0] = ds[0] * (1.0f - y * y);
    ds[0] = vzero();
}

#endif
