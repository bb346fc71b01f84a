/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of slstm on the CPU. */
#ifndef TRINE_CPU_RECURRENT_SLSTM_H
#define TRINE_CPU_RECURRENT_SLSTM_H

#include "cells.h"

enum { SLSTM_I, SLSTM_F, SLSTM_Z, SLSTM_O };
enum { SLSTM_STATE_H, SLSTM_STATE_C, SLSTM_STATE_N, SLSTM_STATE_M };
enum { CELL_INPUTS = 4, CELL_PRODUCTS = 4, CELL_SAVED = 4, CELL_KINDS = 4, CELL_GRADIENTS = 1 };
static const int cell_product_row[CELL_PRODUCTS] CELL_UNUSED = { 0, 1, 2, 3 };

INLINE void cell_gates(const vf *wx, const vf *product, const vf *bias, vf *g) {
    for (int q = 0; q < CELL_SAVED; q++) g[q] = wx[q] + product[q] + bias[q];
}

INLINE vf log_sigmoid(vf x) { return vmin(vzero(), x) - vlog(1.0f + vexp(-vabs(x))); }

/* Without a state m is the input gate; NaN of either is NaN. */
INLINE void cell_next(const vf *g, vf *s) {
    const vi none = s[SLSTM_STATE_N] == vzero();
    const vf l = log_sigmoid(g[SLSTM_F]) + s[SLSTM_STATE_M], in = g[SLSTM_I];
    const vf larger = vsel(l == l, vsel(l > in, l, in), l), m = vsel(none, in, larger);
    const vf f = vexp(l - m), i = vexp(in - m);
    s[SLSTM_STATE_M] = m;
    s[SLSTM_STATE_C] = vsel(none, vzero(), f * s[SLSTM_STATE_C]) + i * vtanh(g[SLSTM_Z]);
    s[SLSTM_STATE_N] = vsel(none, vzero(), f * s[SLSTM_STATE_N]) + i;
    s[SLSTM_STATE_H] = vsigmoid(g[SLSTM_O]) * (s[SLSTM_STATE_C] / s[SLSTM_STATE_N]);
}

INLINE void cell_back(const vf *g, const vf *before, const vf *after, vf *ds, vf *dg) {
    const vi none = before[SLSTM_STATE_N] == vzero();
    const vf m = after[SLSTM_STATE_M], n = after[SLSTM_STATE_N], y = after[SLSTM_STATE_C] / n;
    const vf f = vsel(none, vzero(), vexp(log_sigmoid(g[SLSTM_F]) + before[SLSTM_STATE_M] - m)),
             i = vexp(g[SLSTM_I] - m), z = vtanh(g[SLSTM_Z]), o = vsigmoid(g[SLSTM_O]);
    const vf dh = ds[SLSTM_STATE_H], part = dh * o / n, dc = ds[SLSTM_STATE_C] + part,
             dn = ds[SLSTM_STATE_N] - part * y;
    const vf sum = dc * before[SLSTM_STATE_C] + dn * before[SLSTM_STATE_N];
    dg[SLSTM_I] = (dc * z + dn) * i;
    dg[SLSTM_F] = vsel(none, vzero(), sum * f * vsigmoid(-g[SLSTM_F]));
    dg[SLSTM_Z] = dc * i * (1.0f - z * z);
    dg[SLSTM_O] = dh * y * (o * (1.0f - o));
    ds[SLSTM_STATE_H] = ds[SLSTM_STATE_M] = vzero();
    ds[SLSTM_STATE_C] = dc * f;
    ds[SLSTM_STATE_N] = dn * f;
}

#endif
