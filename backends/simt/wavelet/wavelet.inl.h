/* SPDX-License-Identifier: Apache-2.0 */
/* What dwt and idwt share on devices. */
#ifndef TRINE_SIMT_WAVELET_INL_H
#define TRINE_SIMT_WAVELET_INL_H

#include "backends/simt/conv/summed.h"
#include "backends/simt/core/quotient.h"
#include "wavelet.h"

#define WAVELET_FUNCTION DEVICE
#include "spec/wavelet/edge.h"

/* A block's tile: of image n, from row `row` and place `column` on; and the thread's row and lane of it. */
struct wavelet_tile {
    int64_t n, row, column;
    int line, lane;

    DEVICE wavelet_tile(const wavelet_params &p) {
        const int64_t block = block_index(), band = quotient_below(p.tiles, block, p.across);
        n = quotient_below(p.tiles, band, p.down);
        column = (block - band * p.across.by) * WAVELET_COLUMNS;
        row = (band - n * p.down.by) * WAVELET_ROWS;
        line = thread_index() / WAVELET_COLUMNS, lane = thread_index() % WAVELET_COLUMNS;
    }
};

/* A tap of either filter, as elements are summed. */
template <class Value> struct wavelet_taps {
    Value of[2];
};
template <class Value> DEVICE void wavelet_taps_load(wavelet_taps<Value> *tap, const wavelet_params &p) {
    const int j = thread_index();
    if (j < WAVELET_MOST) tap[j] = { { (Value)p.tap[0][j], (Value)p.tap[1][j] } };
}

template <class T> DEVICE typename conv_summed<T>::type wavelet_get(const void *data, int64_t at) {
    return T::get(((const typename T::bits *)data)[at]);
}
template <class T> DEVICE void wavelet_put(void *data, int64_t at, typename conv_summed<T>::type x) {
    ((typename T::bits *)data)[at] = T::put(x);
}

#endif
