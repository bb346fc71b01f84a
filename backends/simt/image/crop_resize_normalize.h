/* SPDX-License-Identifier: Apache-2.0 */
/* What crop_resize_normalize's host side passes to its device side. */
#ifndef TRINE_SIMT_CROP_RESIZE_NORMALIZE_H
#define TRINE_SIMT_CROP_RESIZE_NORMALIZE_H

#include "backends/simt/core/params.h"

enum { RESIZE_CHANNELS = 4 /* of a thread */ };

/* An array of images; strides in elements. */
typedef struct resize_view {
    void *data;
    int64_t n, h, w, c;
} resize_view;

typedef struct resize_params {
    resize_view x, y;
    simt_rows boxes, images;       /* data NULL: absent */
    const float *mean, *deviation; /* NULL: absent */
    simt_divisor q, p, groups;     /* groups: of RESIZE_CHANNELS channels */
    int64_t n, h, w, c, count;     /* count: of threads */
    int32_t filter, coordinates;
    bool antialias, reverse, wide; /* wide: boxes and images are i64 */
    float scale, cubic;
} resize_params;

#endif
