/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of elman on devices. */
#ifndef TRINE_SIMT_RECURRENT_ELMAN_CELL_H
#define TRINE_SIMT_RECURRENT_ELMAN_CELL_H

#include "backends/simt/core/math.h"

struct elman_cell {
    static constexpr int INPUTS = 1, PRODUCTS = 1, SAVED = 1, KINDS = 1, GRADIENTS = 1;
    static DEVICE int product_row(int q) { return q; }

    static DEVICE void gates(const float *wx, const float *product, const float *bias, float *g) {
        g[0] = wx[0] + product[0] + bias[0];
    }

    static DEVICE void next(const float *g, float *s) { s[0] = tanh_of(g[0]); }

    static DEVICE void back(const float *g, const float *before, const float *after, float *ds, float *dg) {
        const float y = tanh_of(g[0]);
        (void)before, (void)after;
        dg[0] = ds[0] * (1.0f - y * y);
        ds[0] = 0.0f;
    }
};

#endif
