/* SPDX-License-Identifier: Apache-2.0 */
/* The type f64 on devices. */
#ifndef TRINE_SIMT_F64_H
#define TRINE_SIMT_F64_H

#include "simt.h"

struct f64 {
    using bits = double;
    static DEVICE double get(double b) { return b; }
    static DEVICE double put(double x) { return x; }
};

#endif
