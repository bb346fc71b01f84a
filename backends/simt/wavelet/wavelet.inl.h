/* SPDX-License-Identifier: Apache-2.0 */
/* What dwt and idwt share on devices. */
#ifndef TRINE_SIMT_WAVELET_INL_H
#define TRINE_SIMT_WAVELET_INL_H

#include "backends/simt/conv/summed.h"
#include "backends/simt/core/simt.h"
#include "wavelet.h"

#define WAVELET_FUNCTION DEVICE
#include "spec/wavelet/edge.h"

/* A block's tile: of image n, from row `row` and place `column` on. */
struct wavelet_tile {
    int64_t n, row, column;

    DEVICE wavelet_tile(const wavelet_params &p) {
        const int64_t block = block_index();
        column = block % p.across * WAVELET_COLUMNS;
        row = block / p.across % p.down * WAVELET_ROWS;
        n = block / (p.across * p.down);
    }
};

template <class T> DEVICE typename conv_summed<T>::type wavelet_get(const void *data, int64_t at) {
    return T::get(((const typename T::bits *)data)[at]);
}
template <class T> DEVICE void wavelet_put(void *data, int64_t at, typename conv_summed<T>::type x) {
    ((typename T::bits *)data)[at] = T::put(x);
}

#endif
