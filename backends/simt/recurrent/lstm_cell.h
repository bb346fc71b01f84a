/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of lstm on devices. */
#ifndef TRINE_SIMT_RECURRENT_LSTM_CELL_H
#define TRINE_SIMT_RECURRENT_LSTM_CELL_H

#include "backends/simt/core/math.h"

enum { LSTM_I, LSTM_F, LSTM_Z, LSTM_O };
enum { LSTM_STATE_H, LSTM_STATE_C };

struct lstm_cell {
    static constexpr int INPUTS = 4, PRODUCTS = 4, SAVED = 4, KINDS = 2, GRADIENTS = 2;
    static DEVICE int product_row(int q) { return q; }

    static DEVICE void gates(const float *wx, const float *product, const float *bias, float *g) {
        for (int q = 0; q < SAVED; q++) g[q] = wx[q] + product[q] + bias[q];
    }

    static DEVICE void next(const float *g, float *s) {
        const float in = sigmoid(g[LSTM_I]) * tanh_of(g[LSTM_Z]);
        s[LSTM_STATE_C] = fused(sigmoid(g[LSTM_F]), s[LSTM_STATE_C], in);
        s[LSTM_STATE_H] = sigmoid(g[LSTM_O]) * tanh_of(s[LSTM_STATE_C]);
    }

    static DEVICE void back(const float *g, const float *before, const float *after, float *ds, float *dg) {
        const float i = sigmoid(g[LSTM_I]), f = sigmoid(g[LSTM_F]), z = tanh_of(g[LSTM_Z]), o = sigmoid(g[LSTM_O]),
                    y = tanh_of(after[LSTM_STATE_C]), dh = ds[LSTM_STATE_H],
                    dc = ds[LSTM_STATE_C] + dh * o * (1.0f - y * y);
        dg[LSTM_I] = dc * z * (i * (1.0f - i));
        dg[LSTM_F] = dc * before[LSTM_STATE_C] * (f * (1.0f - f));
        dg[LSTM_Z] = dc * i * (1.0f - z * z);
        dg[LSTM_O] = dh * y * (o * (1.0f - o));
        ds[LSTM_STATE_H] = 0.0f;
        ds[LSTM_STATE_C] = dc * f;
    }
};

#endif
