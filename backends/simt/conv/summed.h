/* SPDX-License-Identifier: Apache-2.0 */
/* What elements of a type are summed in. */
#ifndef TRINE_SIMT_SUMMED_H
#define TRINE_SIMT_SUMMED_H

#include "backends/simt/core/f64.h"

template <class T> struct conv_summed {
    using type = float;
};
template <> struct conv_summed<f64> {
    using type = double;
};

#endif
