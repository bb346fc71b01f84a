/* SPDX-License-Identifier: Apache-2.0 */
/* What crop_resize_normalize's host side passes to its device side. */
#ifndef TRINE_SIMT_CROP_RESIZE_NORMALIZE_H
#define TRINE_SIMT_CROP_RESIZE_NORMALIZE_H

#include "backends/simt/core/params.h"

enum {
    RESIZE_CHANNELS = 4, /* of a thread */
    RESIZE_SIDE = 32,    /* pixels of a block's square of y */
    RESIZE_REACH = 32    /* pixels of x that a square's tables have room for, of each side of one of y */
};

/* An array of images; strides in elements. */
typedef struct resize_view {
    void *data;
    int64_t n, h, w, c;
} resize_view;

typedef struct resize_params {
    resize_view x, y;
    simt_rows boxes, images;           /* data NULL: absent */
    const float *mean, *deviation;     /* NULL: absent */
    simt_divisor across, down, groups; /* squares of an image, and groups of RESIZE_CHANNELS channels */
    int64_t n, h, w, c, p, q, blocks;
    int32_t filter, coordinates;
    bool antialias, reverse, wide; /* wide: boxes and images are i64 */
    float scale, cubic;
} resize_params;

#endif
