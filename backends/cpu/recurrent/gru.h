/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of gru on the CPU. */
#ifndef TRINE_CPU_RECURRENT_GRU_H
#define TRINE_CPU_RECURRENT_GRU_H

#include "cells.h"

enum { GRU_GATE_R, GRU_GATE_Z, GRU_GATE_N, GRU_GATE_A };
enum { CELL_INPUTS = 3, CELL_PRODUCTS = 3, CELL_SAVED = 4, CELL_KINDS = 1, CELL_GRADIENTS = 1 };
static const int cell_product_row[CELL_PRODUCTS] CELL_UNUSED = { GRU_GATE_R, GRU_GATE_Z, GRU_GATE_A };

INLINE void cell_gates(const vf *wx, const vf *product, const vf *bias, vf *g) {
    g[GRU_GATE_R] = wx[GRU_GATE_R] + product[GRU_GATE_R] + bias[GRU_GATE_R];
    g[GRU_GATE_Z] = wx[GRU_GATE_Z] + product[GRU_GATE_Z] + bias[GRU_GATE_Z];
    g[GRU_GATE_A] = product[GRU_GATE_N] + bias[GRU_GATE_A];
    g[GRU_GATE_N] = wx[GRU_GATE_N] + bias[GRU_GATE_N] + vsigmoid(g[GRU_GATE_R]) * g[GRU_GATE_A];
}

INLINE void cell_next(const vf *g, vf *s) {
    const vf z = vsigmoid(g[GRU_GATE_Z]);
    s[0] = z * s[0] + (1.0f - z) * vtanh(g[GRU_GATE_N]);
}

INLINE void cell_back(const vf *g, const vf *before, const vf *after, vf *ds, vf *dg) {
    const vf r = vsigmoid(g[GRU_GATE_R]), z = vsigmoid(g[GRU_GATE_Z]), n = vtanh(g[GRU_GATE_N]), dh = ds[0];
    (void)after;
    dg[GRU_GATE_Z] = dh * (before[0] - n) * (z * (1.0f - z));
    dg[GRU_GATE_N] = dh * (1.0f - z) * (1.0f - n * n);
    dg[GRU_GATE_A] = dg[GRU_GATE_N] * r;
    dg[GRU_GATE_R] = dg[GRU_GATE_N] * g[GRU_GATE_A] * (r * (1.0f - r));
    ds[0] = dh * z;
}

#endif
