/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that dwt and idwt share. */
#ifndef TRINE_SIMT_WAVELET_HOST_H
#define TRINE_SIMT_WAVELET_HOST_H

#include <string.h>

#include <trine/wavelet.h>

#include "backends/simt/core/host.h"
#include "spec/wavelet/filters.h"
#include "wavelet.h"

/* Tiles of a result with rows of so many elements, `each` of them in a place. */
static inline wavelet_params wavelet_params_of(const trine_tensor *x, const trine_tensor *y, wavelet_filters filters,
                                               int edge, int64_t rows, int64_t columns, int each) {
    wavelet_params p = { .x = x->data,
                         .y = y->data,
                         .n = x->shape[0],
                         .h = x->shape[1],
                         .w = x->shape[2],
                         .k = y->shape[1],
                         .p = y->shape[2],
                         .q = y->shape[3],
                         .down = simt_blocks(rows, WAVELET_ROWS),
                         .across = simt_blocks(columns, each * WAVELET_COLUMNS),
                         .taps = filters.taps,
                         .edge = edge };
    memcpy(p.tap, filters.tap, sizeof p.tap);
    memcpy(p.x_step, x->stride, sizeof p.x_step);
    memcpy(p.y_step, y->stride, sizeof p.y_step);
    return p;
}

#endif
