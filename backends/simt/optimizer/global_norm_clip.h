/* SPDX-License-Identifier: Apache-2.0 */
/* What global_norm_clip's host side passes to its device side. */
#ifndef TRINE_SIMT_GLOBAL_NORM_CLIP_H
#define TRINE_SIMT_GLOBAL_NORM_CLIP_H

#include "backends/simt/core/ahead.h"
#include "backends/simt/core/list.h"
#include "backends/simt/core/params.h"

enum {
    CLIP_BLOCK = 16384, /* elements whose squares one block sums */
    CLIP_BYTES = 16     /* that a thread scales */
};

/* What follows from the sums of squares of each block, which the workspace has behind the coefficient. */
typedef struct clip_sums {
    const void *other;
    void *sum_squares, *norm, *coefficient; /* NULL: absent */
    double *partial;
    float *workspace_coefficient;
    int64_t g, blocks;
    float max_norm;
    bool told;           /* the norm is of the others alone */
    bool double_squares; /* other and sum_squares are f64, not f32 */
} clip_sums;

typedef struct clip_params {
    const void *x;
    void *y; /* NULL: absent */
    int64_t n;
    bool wide;
    simt_ahead ahead; /* of x */
    clip_sums sums;
} clip_params;

/* The same of a list, a table for each step. */
typedef struct clip_squares_item {
    const void *x;
    double *partial;
    int64_t n;
    uint32_t first; /* of its blocks */
    uint8_t type;   /* simt_list_type */
    bool wide;
} clip_squares_item;
enum { CLIP_LIST_SQUARES = SIMT_LIST_BYTES / sizeof(clip_squares_item) };
typedef struct clip_list_squares {
    int32_t count;
    clip_squares_item item[CLIP_LIST_SQUARES];
} clip_list_squares;

enum { CLIP_LIST_SUMS = SIMT_LIST_BYTES / sizeof(clip_sums) };
typedef struct clip_list_sums {
    clip_sums item[CLIP_LIST_SUMS]; /* each has a block */
} clip_list_sums;

typedef struct clip_scale_item {
    const void *x;
    void *y;
    const float *coefficient;
    int64_t n;
    uint32_t first;
    uint8_t type;
    bool wide;
} clip_scale_item;
enum { CLIP_LIST_SCALE = SIMT_LIST_BYTES / sizeof(clip_scale_item) };
typedef struct clip_list_scale {
    int32_t count;
    clip_scale_item item[CLIP_LIST_SCALE];
} clip_list_scale;

#endif
