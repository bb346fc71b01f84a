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
    const int64_t down = simt_blocks(rows + (rows == 0), WAVELET_ROWS),
                  across = simt_blocks(columns + (columns == 0), each * WAVELET_COLUMNS);
    wavelet_params p = { .x = x->data,
                         .y = y->data,
                         .n = x->shape[0],
                         .h = x->shape[1],
                         .w = x->shape[2],
                         .k = y->shape[1],
                         .p = y->shape[2],
                         .q = y->shape[3],
                         .tiles = rows > 0 && columns > 0 ? x->shape[0] * down * across : 0,
                         .down = simt_divisor_of(down),
                         .across = simt_divisor_of(across),
                         .taps = filters.taps,
                         .edge = edge };
    memcpy(p.tap, filters.tap, sizeof p.tap);
    _Static_assert(sizeof p.tap == sizeof filters.tap, "both have room for as many taps");
    memcpy(p.x_step, x->stride, sizeof p.x_step);
    memcpy(p.y_step, y->stride, sizeof p.y_step);
    return p;
}

/* One level of rows or images: forward tiles are of y, inverse ones of x. */
static inline trine_status wavelet_launch(const trine_call *call, const trine_tensor *x, const trine_tensor *y,
                                          int wavelet, int edge, bool inverse) {
    const wavelet_params p =
        wavelet_params_of(x, y, wavelet_filters_of(wavelet, inverse), edge, inverse ? x->shape[1] : y->shape[2],
                          inverse ? x->shape[2] : y->shape[3], inverse ? 2 : 1);
    const simt_function function = { .type = { x->dtype } };
    return simt_launch(call, &function, p.tiles, SIMT_THREADS, &p, sizeof p);
}

#endif
