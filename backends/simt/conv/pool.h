/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of pool2d and its gradient pass to their device sides. */
#ifndef TRINE_SIMT_POOL_H
#define TRINE_SIMT_POOL_H

#include "backends/simt/core/params.h"

typedef struct pool_axis {
    int64_t in, out, kernel, stride, pad, dilation;
} pool_axis;

/* An array of images; strides in elements. */
typedef struct pool_view {
    void *data; /* NULL: absent */
    int64_t n, h, w, c;
} pool_view;

typedef struct pool_params {
    pool_axis h, w;
    pool_view x, y, other; /* other: indices, or dx */
    int64_t n, c;
    int32_t kind;
    bool across; /* neighbours along the width are neighbours in memory */
} pool_params;

#endif
