/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of lstm on the CPU. */
#ifndef TRINE_CPU_RECURRENT_LSTM_H
#define TRINE_CPU_RECURRENT_LSTM_H

#include "cells.h"

enum { LSTM_I, LSTM_F, LSTM_Z, LSTM_O };
enum { LSTM_STATE_H, LSTM_STATE_C };
enum { CELL_INPUTS = 4, CELL_PRODUCTS = 4, CELL_SAVED = 4, CELL_KINDS = 2, CELL_GRADIENTS = 2 };
static const int cell_product_row[CELL_PRODUCTS] CELL_UNUSED = { 0, 1, 2, 3 };

INLINE void cell_gates(const vf *wx, const vf *product, const vf *bias, vf *g) {
    for (int q = 0; q < CELL_SAVED; q++) g[q] = wx[q] + product[q] + bias[q];
}

INLINE void cell_next(const vf *g, vf *s) {
    const vf in = vsigmoid(g[LSTM_I]) * vtanh(g[LSTM_Z]);
    s[LSTM_STATE_C] = vfma(vsigmoid(g[LSTM_F]), s[LSTM_STATE_C], in);
    s[LSTM_STATE_H] = vsigmoid(g[LSTM_O]) * vtanh(s[LSTM_STATE_C]);
}

INLINE void cell_back(const vf *g, const vf *before, const vf *after, vf *ds, vf *dg) {
    const vf i = vsigmoid(g[LSTM_I]), f = vsigmoid(g[LSTM_F]), z = vtanh(g[LSTM_Z]), o = vsigmoid(g[LSTM_O]),
             y = vtanh(after[LSTM_STATE_C]), dh = ds[LSTM_STATE_H], dc = ds[LSTM_STATE_C] + dh * o * (1.0f - y * y);
    dg[LSTM_I] = dc * z * (i * (1.0f - i));
    dg[LSTM_F] = dc * before[LSTM_STATE_C] * (f * (1.0f - f));
    dg[LSTM_Z] = dc * i * (1.0f - z * z);
    dg[LSTM_O] = dh * y * (o * (1.0f - o));
    ds[LSTM_STATE_H] = vzero();
    ds[LSTM_STATE_C] = dc * f;
}

#endif
