/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that ops on bands of coefficients share. */
#ifndef TRINE_SIMT_THRESHOLD_HOST_H
#define TRINE_SIMT_THRESHOLD_HOST_H

#include <trine/wavelet.h>

#include "backends/simt/core/host.h"
#include "threshold.h"

static inline threshold_view threshold_view_of(const trine_tensor *t) {
    return t ? (threshold_view){ t->data, t->stride[0], t->stride[1], t->stride[2] } : (threshold_view){ 0 };
}

static inline threshold_params threshold_params_of(const trine_tensor *x, const trine_tensor *threshold) {
    const int64_t w = x->shape[2], size = x->shape[1] * w;
    return (threshold_params){ .x = threshold_view_of(x),
                               .threshold = threshold->data,
                               .threshold_step = threshold->stride[0],
                               .b = x->shape[0],
                               .h = x->shape[1],
                               .w = w,
                               .row = simt_divisor_of(w + (w == 0)),
                               .band = simt_divisor_of(size + (size == 0)),
                               .parts = simt_blocks(size, THRESHOLD_PART) };
}

#endif
