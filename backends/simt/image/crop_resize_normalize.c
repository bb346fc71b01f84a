/* SPDX-License-Identifier: Apache-2.0 */
/* crop_resize_normalize on devices: the host side. */
#include <trine/image.h>

#include "crop_resize_normalize.h"
#include "backends/simt/core/host.h"
#include "spec/places/crop_resize_normalize.h"

static resize_view view_of(const trine_tensor *t) {
    return (resize_view){ t->data, t->stride[0], t->stride[1], t->stride[2], t->stride[3] };
}

static simt_rows rows_of(const trine_call *call, int tensor) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? (simt_rows){ .data = t->data, .row = t->stride[0] } : (simt_rows){ 0 };
}

static trine_status launch(const trine_call *call) {
    const trine_crop_resize_normalize_args *args = call->args;
    const int64_t *dim = call->dim, c = dim[CROP_RESIZE_NORMALIZE_DIM_C], b = dim[CROP_RESIZE_NORMALIZE_DIM_B],
                  p = dim[CROP_RESIZE_NORMALIZE_DIM_P], q = dim[CROP_RESIZE_NORMALIZE_DIM_Q],
                  groups = simt_blocks(c, RESIZE_CHANNELS), down = simt_blocks(p, RESIZE_SIDE),
                  across = simt_blocks(q, RESIZE_SIDE);
    if (b * p * q * c == 0) return TRINE_OK;
    const trine_tensor *mean = trine_call_given(call, CROP_RESIZE_NORMALIZE_MEAN),
                       *deviation = trine_call_given(call, CROP_RESIZE_NORMALIZE_DEVIATION);
    const resize_params params = {
        .x = view_of(&call->tensor[CROP_RESIZE_NORMALIZE_X]),
        .y = view_of(&call->tensor[CROP_RESIZE_NORMALIZE_Y]),
        .boxes = rows_of(call, CROP_RESIZE_NORMALIZE_BOXES),
        .images = rows_of(call, CROP_RESIZE_NORMALIZE_IMAGES),
        .mean = mean ? mean->data : NULL,
        .deviation = deviation ? deviation->data : NULL,
        .across = simt_divisor_of(across),
        .down = simt_divisor_of(down),
        .groups = simt_divisor_of(groups),
        .n = dim[CROP_RESIZE_NORMALIZE_DIM_N],
        .h = dim[CROP_RESIZE_NORMALIZE_DIM_H],
        .w = dim[CROP_RESIZE_NORMALIZE_DIM_W],
        .c = c,
        .p = p,
        .q = q,
        .blocks = b * down * across * groups,
        .filter = args->filter,
        .coordinates = args->coordinates,
        .antialias = args->antialias != 0,
        .reverse = args->reverse != 0,
        .wide = call->type[CROP_RESIZE_NORMALIZE_TYPE_I] == TRINE_I64,
        .scale = args->scale,
        .cubic = args->cubic,
    };
    const simt_function function = { .type = { call->type[CROP_RESIZE_NORMALIZE_TYPE_U],
                                               call->type[CROP_RESIZE_NORMALIZE_TYPE_T] } };
    return simt_launch(call, &function, params.blocks, SIMT_THREADS, &params, sizeof params);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, CROP_RESIZE_NORMALIZE_DIM_C, RESIZE_CHANNELS);
    trine_kernel_edge(edges, CROP_RESIZE_NORMALIZE_DIM_P, RESIZE_SIDE);
    trine_kernel_edge(edges, CROP_RESIZE_NORMALIZE_DIM_Q, RESIZE_SIDE);
    /* of a box as large as the image, an area and a triangle at least reach as far as the tables, and as twice them */
    trine_kernel_edge(edges, CROP_RESIZE_NORMALIZE_DIM_W, RESIZE_REACH * call->dim[CROP_RESIZE_NORMALIZE_DIM_Q]);
    trine_kernel_edge(edges, CROP_RESIZE_NORMALIZE_DIM_H, RESIZE_REACH * call->dim[CROP_RESIZE_NORMALIZE_DIM_P]);
}

SIMT_KERNELS(crop_resize_normalize) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
