/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of lstm in float64, with the error a kernel may make. */
#ifndef TRINE_SPEC_RECURRENT_LSTM_H
#define TRINE_SPEC_RECURRENT_LSTM_H

#include "cells.h"

/* The sums that are all of the gates. */
static inline void lstm_gates(const near *wx, const near *product, const near *bias, near *g) {
    for (int q = 0; q < 4; q++) g[q] = near_plus(near_plus(wx[q], product[q]), bias[q]);
}

enum { LSTM_I, LSTM_F, LSTM_Z, LSTM_O };
enum { LSTM_H, LSTM_C };

static inline void lstm_step(const near *g, const near *before, near *after) {
    const near in = near_times(cell_sigmoid(g[LSTM_I]), cell_tanh(g[LSTM_Z]));
    after[LSTM_C] = near_plus(near_times(cell_sigmoid(g[LSTM_F]), before[LSTM_C]), in);
    after[LSTM_H] = near_times(cell_sigmoid(g[LSTM_O]), cell_tanh(after[LSTM_C]));
}

static inline void lstm_back(const near *g, const near *before, const near *after, near *dstate, near *dg) {
    const near i = cell_sigmoid(g[LSTM_I]), f = cell_sigmoid(g[LSTM_F]), z = cell_tanh(g[LSTM_Z]),
               o = cell_sigmoid(g[LSTM_O]), y = cell_tanh(after[LSTM_C]), dh = dstate[LSTM_H];
    const near dc = near_plus(dstate[LSTM_C], near_times(near_times(dh, o), cell_tanh_slope(y)));
    dg[LSTM_I] = near_times(near_times(dc, z), cell_sigmoid_slope(i));
    dg[LSTM_F] = near_times(near_times(dc, before[LSTM_C]), cell_sigmoid_slope(f));
    dg[LSTM_Z] = near_times(near_times(dc, i), cell_tanh_slope(z));
    dg[LSTM_O] = near_times(near_times(dh, y), cell_sigmoid_slope(o));
    dstate[LSTM_H] = near_of(0);
    dstate[LSTM_C] = near_times(dc, f);
}

static const cell lstm_cell = { 4, 4, 4, 2, { "h", "c" }, lstm_gates, lstm_step, lstm_back, { 0, 1, 2, 3 } };

#endif
