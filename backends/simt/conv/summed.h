/* SPDX-License-Identifier: Apache-2.0 */
/* The type f64 on devices, and what elements of a type are summed in. */
#ifndef TRINE_SIMT_SUMMED_H
#define TRINE_SIMT_SUMMED_H

#include "backends/simt/core/simt.h"

struct f64 {
    using bits = double;
    static DEVICE double get(double b) { return b; }
    static DEVICE double put(double x) { return x; }
};
template <class T> struct conv_summed {
    using type = float;
};
template <> struct conv_summed<f64> {
    using type = double;
};

#endif
