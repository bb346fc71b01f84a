/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of elman in float64, with the error a kernel may make. */
#ifndef TRINE_SPEC_RECURRENT_ELMAN_H
#define TRINE_SPEC_RECURRENT_ELMAN_H

#include "cells.h"

/* The sums that are all of the gates. */
static inline void elman_gates(const near *wx, const near *product, const near *bias, near *g) {
    for (int q = 0; q < 1; q++) g[q] = near_plus(near_plus(wx[q], product[q]), bias[q]);
}

static inline void elman_step(const near *g, const near *before, near *after) {
    (void)before;
    after[0] = cell_tanh(g[0]);
}

static inline void elman_back(const near *g, const near *before, const near *after, near *dstate, near *dg) {
    (void)before, (void)after;
    dg[0] = near_times(dstate[0], cell_tanh_slope(cell_tanh(g[0])));
    dstate[0] = near_of(0);
}

static const cell elman_cell = { 1, 1, 1, 1, { "h" }, elman_gates, elman_step, elman_back, { 0 } };

#endif
