/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of slstm in float64, with the error a kernel may make. */
#ifndef TRINE_SPEC_RECURRENT_SLSTM_H
#define TRINE_SPEC_RECURRENT_SLSTM_H

#include "cells.h"

/* The sums that are all of the gates. */
static inline void slstm_gates(const near *wx, const near *product, const near *bias, near *g) {
    for (int q = 0; q < 4; q++) g[q] = near_plus(near_plus(wx[q], product[q]), bias[q]);
}

enum { SLSTM_I, SLSTM_F, SLSTM_Z, SLSTM_O };
enum { SLSTM_H, SLSTM_C, SLSTM_N, SLSTM_M };

/* log sigmoid x = min(x, 0) - log(1 + e^-|x|): the power to 8u, its sum with 1 to u, the logarithm to 4u of itself. */
static inline near slstm_log_sigmoid(near x) {
    if (isinf(x.off)) return near_any();
    const double y = fmin(x.of, 0) - log1p(exp(-fabs(x.of)));
    if (isnan(x.of)) return x;
    return near_bounded((near){ y, isinf(y) ? 0 : x.off + 8 * U + 2 * U * fabs(y) });
}

/* May a kernel have any number for it? */
static inline bool slstm_vague(near a) { return isinf(a.off); }

/* The two exponentials, from the state's n and m before and m after it: i, and f, which is 0 without a state. Whatever
 * the larger exponent is, its exponential is 1. */
static inline void slstm_powers(const near *g, const near *before, near m, near *i, near *f) {
    *i = near_exp(near_minus(g[SLSTM_I], m));
    *f = near_of(0);
    if (before[SLSTM_N].of != 0 || before[SLSTM_N].off != 0)
        *f = near_exp(near_minus(near_plus(slstm_log_sigmoid(g[SLSTM_F]), before[SLSTM_M]), m));
}

static inline void slstm_step(const near *g, const near *before, near *after) {
    const near l = near_plus(slstm_log_sigmoid(g[SLSTM_F]), before[SLSTM_M]), *input = &g[SLSTM_I];
    const bool state = before[SLSTM_N].of != 0 || before[SLSTM_N].off != 0;
    near m = *input, i = near_of(1), f = near_of(0);
    if (state && (slstm_vague(l) || slstm_vague(*input) || isnan(l.of) || isnan(input->of))) {
        m = i = f = isnan(l.of) || isnan(input->of) ? near_of(NAN) : near_any();
    } else if (state && l.of - l.off > input->of + input->off) {
        m = l, f = near_of(1), i = near_exp(near_minus(*input, l));
    } else if (state && input->of - input->off > l.of + l.off) {
        f = near_exp(near_minus(l, *input));
    } else if (state) {
        m = (near){ fmax(l.of, input->of), fmax(l.off, input->off) };
        f = near_exp(near_minus(l, m)), i = near_exp(near_minus(*input, m));
    } else if (!isfinite(input->of) || slstm_vague(*input)) {
        i = slstm_vague(*input) ? near_any() : near_of(NAN);
    }
    if (isinf(m.of)) i = f = near_any();
    after[SLSTM_M] = m;
    after[SLSTM_C] = near_times(i, cell_tanh(g[SLSTM_Z]));
    after[SLSTM_N] = i;
    if (state) {
        after[SLSTM_C] = near_plus(near_times(f, before[SLSTM_C]), after[SLSTM_C]);
        after[SLSTM_N] = near_plus(near_times(f, before[SLSTM_N]), after[SLSTM_N]);
    }
    after[SLSTM_H] = near_times(cell_sigmoid(g[SLSTM_O]), near_over(after[SLSTM_C], after[SLSTM_N]));
}

static inline void slstm_back(const near *g, const near *before, const near *after, near *dstate, near *dg) {
    near i, f;
    slstm_powers(g, before, after[SLSTM_M], &i, &f);
    const near z = cell_tanh(g[SLSTM_Z]), o = cell_sigmoid(g[SLSTM_O]), dh = dstate[SLSTM_H];
    const near y = near_over(after[SLSTM_C], after[SLSTM_N]), part = near_over(near_times(dh, o), after[SLSTM_N]);
    const near dc = near_plus(dstate[SLSTM_C], part), dn = near_minus(dstate[SLSTM_N], near_times(part, y));
    dg[SLSTM_I] = near_times(near_plus(near_times(dc, z), dn), i);
    dg[SLSTM_F] = near_of(0);
    if (before[SLSTM_N].of != 0) {
        const near sum = near_plus(near_times(dc, before[SLSTM_C]), near_times(dn, before[SLSTM_N]));
        const near minus = { -g[SLSTM_F].of, g[SLSTM_F].off };
        dg[SLSTM_F] = near_times(near_times(sum, f), cell_sigmoid(minus));
    }
    dg[SLSTM_Z] = near_times(near_times(dc, i), cell_tanh_slope(z));
    dg[SLSTM_O] = near_times(near_times(dh, y), cell_sigmoid_slope(o));
    dstate[SLSTM_H] = near_of(0);
    dstate[SLSTM_C] = near_times(dc, f), dstate[SLSTM_N] = near_times(dn, f);
    dstate[SLSTM_M] = near_of(0);
}

static const cell slstm_cell = {
    4, 4, 4, 4, { "h", "c", "n", "m" }, slstm_gates, slstm_step, slstm_back, { 0, 1, 2, 3 }
};

#endif
