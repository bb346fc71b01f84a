/* SPDX-License-Identifier: Apache-2.0 */
/* What swiglu_backward and geglu_backward have in common on devices. */
#ifndef TRINE_SIMT_GATED_H
#define TRINE_SIMT_GATED_H

#include "backends/simt/core/math.h"

/* slope up dy, of a slope up to 1.13: an `up` that it would make Inf is taken by halves, whatever dy. */
DEVICE float gated_slope(float slope, float up, float dy) {
    const bool large = magnitude(up) >= 0x1p127f;
    return slope * (up * (large ? 0.5f : 1.0f)) * dy * (large ? 2.0f : 1.0f);
}

#endif
