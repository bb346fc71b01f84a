/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of gru on devices. */
#ifndef TRINE_SIMT_RECURRENT_GRU_CELL_H
#define TRINE_SIMT_RECURRENT_GRU_CELL_H

#include "backends/simt/core/math.h"

enum { GRU_GATE_R, GRU_GATE_Z, GRU_GATE_N, GRU_GATE_A };

struct gru_cell {
    static constexpr int INPUTS = 3, PRODUCTS = 3, SAVED = 4, KINDS = 1, GRADIENTS = 1;
    static DEVICE int product_row(int q) { return q == 2 ? GRU_GATE_A : q; }

    static DEVICE void gates(const float *wx, const float *product, const float *bias, float *g) {
        g[GRU_GATE_R] = wx[GRU_GATE_R] + product[GRU_GATE_R] + bias[GRU_GATE_R];
        g[GRU_GATE_Z] = wx[GRU_GATE_Z] + product[GRU_GATE_Z] + bias[GRU_GATE_Z];
        g[GRU_GATE_A] = product[GRU_GATE_N] + bias[GRU_GATE_A];
        g[GRU_GATE_N] = wx[GRU_GATE_N] + bias[GRU_GATE_N] + sigmoid(g[GRU_GATE_R]) * g[GRU_GATE_A];
    }

    static DEVICE void next(const float *g, float *s) {
        const float z = sigmoid(g[GRU_GATE_Z]);
        s[0] = z * s[0] + (1.0f - z) * tanh_of(g[GRU_GATE_N]);
    }

    static DEVICE void back(const float *g, const float *before, const float *after, float *ds, float *dg) {
        const float r = sigmoid(g[GRU_GATE_R]), z = sigmoid(g[GRU_GATE_Z]), n = tanh_of(g[GRU_GATE_N]), dh = ds[0];
        (void)after;
        dg[GRU_GATE_Z] = dh * (before[0] - n) * (z * (1.0f - z));
        dg[GRU_GATE_N] = dh * (1.0f - z) * (1.0f - n * n);
        dg[GRU_GATE_A] = dg[GRU_GATE_N] * r;
        dg[GRU_GATE_R] = dg[GRU_GATE_N] * g[GRU_GATE_A] * (r * (1.0f - r));
        ds[0] = dh * z;
    }
};

#endif
