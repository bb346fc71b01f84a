/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of slstm on devices. */
#ifndef TRINE_SIMT_RECURRENT_SLSTM_CELL_H
#define TRINE_SIMT_RECURRENT_SLSTM_CELL_H

#include "backends/simt/core/math.h"

enum { SLSTM_I, SLSTM_F, SLSTM_Z, SLSTM_O };
enum { SLSTM_STATE_H, SLSTM_STATE_C, SLSTM_STATE_N, SLSTM_STATE_M };

DEVICE float log_sigmoid(float x) { return (x > 0 ? 0.0f : x) - log_of(1.0f + exp_of(-magnitude(x))); }

struct slstm_cell {
    static constexpr int INPUTS = 4, PRODUCTS = 4, SAVED = 4, KINDS = 4, GRADIENTS = 1;
    static DEVICE int product_row(int q) { return q; }

    static DEVICE void gates(const float *wx, const float *product, const float *bias, float *g) {
        for (int q = 0; q < SAVED; q++) g[q] = wx[q] + product[q] + bias[q];
    }

    /* Without a state m is the input gate; NaN of either is NaN. */
    static DEVICE void next(const float *g, float *s) {
        const bool none = s[SLSTM_STATE_N] == 0.0f;
        const float l = log_sigmoid(g[SLSTM_F]) + s[SLSTM_STATE_M], in = g[SLSTM_I];
        const float m = none ? in : l != l || l > in ? l : in;
        const float f = exp_of(l - m), i = exp_of(in - m);
        s[SLSTM_STATE_M] = m;
        s[SLSTM_STATE_C] = (none ? 0.0f : f * s[SLSTM_STATE_C]) + i * tanh_of(g[SLSTM_Z]);
        s[SLSTM_STATE_N] = (none ? 0.0f : f * s[SLSTM_STATE_N]) + i;
        s[SLSTM_STATE_H] = sigmoid(g[SLSTM_O]) * (s[SLSTM_STATE_C] / s[SLSTM_STATE_N]);
    }

    static DEVICE void back(const float *g, const float *before, const float *after, float *ds, float *dg) {
        const bool none = before[SLSTM_STATE_N] == 0.0f;
        const float m = after[SLSTM_STATE_M], n = after[SLSTM_STATE_N], y = after[SLSTM_STATE_C] / n;
        const float f = (none ? 0.0f : exp_of(log_sigmoid(g[SLSTM_F]) + before[SLSTM_STATE_M] - m)),
                    i = exp_of(g[SLSTM_I] - m), z = tanh_of(g[SLSTM_Z]), o = sigmoid(g[SLSTM_O]);
        const float dh = ds[SLSTM_STATE_H], part = dh * o / n, dc = ds[SLSTM_STATE_C] + part,
                    dn = ds[SLSTM_STATE_N] - part * y;
        const float sum = dc * before[SLSTM_STATE_C] + dn * before[SLSTM_STATE_N];
        dg[SLSTM_I] = (dc * z + dn) * i;
        dg[SLSTM_F] = (none ? 0.0f : sum * f * sigmoid(-g[SLSTM_F]));
        dg[SLSTM_Z] = dc * i * (1.0f - z * z);
        dg[SLSTM_O] = dh * y * (o * (1.0f - o));
        ds[SLSTM_STATE_H] = ds[SLSTM_STATE_M] = 0.0f;
        ds[SLSTM_STATE_C] = dc * f;
        ds[SLSTM_STATE_N] = dn * f;
    }
};

#endif
