/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of pool2d and its gradient pass to their device sides. */
#ifndef TRINE_SIMT_POOL_H
#define TRINE_SIMT_POOL_H

#include "backends/simt/core/params.h"

enum {
    POOL_BYTES = 16, /* of neighbouring channels, which a thread has, or one where threads would be few */
    POOL_FEW = 1024, /* of an SM */
    POOL_HELD = 4    /* blocks of an SM */
};

typedef struct pool_axis {
    simt_divisor in, out, stride, dilation;
    int64_t kernel, pad;
} pool_axis;

/* An array of images; strides in elements. */
typedef struct pool_view {
    void *data; /* NULL: absent */
    int64_t n, h, w, c;
    bool whole; /* a thread's channels are an aligned piece */
} pool_view;

/* Numbers of a window's taps, each row after the other; all ones where it has none within. */
typedef struct pool_codes {
    void *data;   /* of each window of y, all its channels, padded to whole pieces */
    int32_t size; /* bytes of one: 2 or 4 where numbers are short, else 8 */
} pool_codes;

typedef struct pool_params {
    pool_axis h, w;
    pool_view x, y, other; /* other: indices, or dx */
    int64_t n, c;
    int32_t own;         /* channels of a thread */
    simt_divisor pieces; /* threads for the channels of a place */
    int64_t windows;     /* pieces of y */
    int64_t places;      /* and of x */
    pool_codes codes;    /* of the gradient of the largest */
    int32_t kind;
    bool across; /* neighbours along the width are neighbours in memory */
    bool narrow; /* numbers of pieces, places and taps are below 2^31 */
} pool_params;

#endif
