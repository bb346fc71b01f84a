/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of gru in float64, with the error a kernel may make. */
#ifndef TRINE_SPEC_RECURRENT_GRU_H
#define TRINE_SPEC_RECURRENT_GRU_H

#include "cells.h"

enum { GRU_R, GRU_Z, GRU_N, GRU_A };

static inline void gru_gates(const near *wx, const near *product, const near *bias, near *g) {
    g[GRU_R] = near_plus(near_plus(wx[GRU_R], product[GRU_R]), bias[GRU_R]);
    g[GRU_Z] = near_plus(near_plus(wx[GRU_Z], product[GRU_Z]), bias[GRU_Z]);
    g[GRU_A] = near_plus(product[GRU_N], bias[GRU_A]);
    g[GRU_N] = near_plus(near_plus(wx[GRU_N], bias[GRU_N]), near_times(cell_sigmoid(g[GRU_R]), g[GRU_A]));
}

/* 1 - z is a difference, or another sigmoid: its error is that of z. */
static inline void gru_step(const near *g, const near *before, near *after) {
    const near z = cell_sigmoid(g[GRU_Z]), n = cell_tanh(g[GRU_N]);
    after[0] = near_plus(near_times(z, before[0]), near_times(cell_rest(z), n));
}

static inline void gru_back(const near *g, const near *before, const near *after, near *dstate, near *dg) {
    const near r = cell_sigmoid(g[GRU_R]), z = cell_sigmoid(g[GRU_Z]), n = cell_tanh(g[GRU_N]), dh = dstate[0];
    (void)after;
    dg[GRU_Z] = near_times(near_times(dh, near_minus(before[0], n)), cell_sigmoid_slope(z));
    dg[GRU_N] = near_times(near_times(dh, cell_rest(z)), cell_tanh_slope(n));
    dg[GRU_A] = near_times(dg[GRU_N], r);
    dg[GRU_R] = near_times(near_times(dg[GRU_N], g[GRU_A]), cell_sigmoid_slope(r));
    dstate[0] = near_times(dh, z);
}

static const cell gru_cell = { 3, 3, 4, 1, { "h" }, gru_gates, gru_step, gru_back, { GRU_R, GRU_Z, GRU_A } };

#endif
