/* SPDX-License-Identifier: Apache-2.0 */
/* What ops on bands of coefficients share on devices. */
#ifndef TRINE_SIMT_THRESHOLD_INL_H
#define TRINE_SIMT_THRESHOLD_INL_H

#include "backends/simt/conv/summed.h"
#include "backends/simt/core/quotient.h"
#include "threshold.h"

/* Where element `number` of a band is. */
DEVICE int64_t threshold_place(const threshold_params &p, const threshold_view &v, int64_t band, int64_t number) {
    const int64_t row = quotient_below(p.band.by, number, p.row);
    return band * v.band + row * v.row + (number - row * p.w) * v.step;
}

template <class T> DEVICE typename conv_summed<T>::type threshold_get(const void *data, int64_t at) {
    return T::get(((const typename T::bits *)data)[at]);
}
template <class T> DEVICE void threshold_set(void *data, int64_t at, typename conv_summed<T>::type x) {
    ((typename T::bits *)data)[at] = T::put(x);
}

template <class Value> DEVICE Value threshold_size(Value x) { return x < 0 ? -x : x; }

#endif
