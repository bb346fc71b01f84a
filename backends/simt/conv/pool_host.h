/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that pool2d and its gradient share. */
#ifndef TRINE_SIMT_POOL_HOST_H
#define TRINE_SIMT_POOL_HOST_H

#include <trine/conv.h>

#include "backends/simt/core/host.h"
#include "pool.h"

/* Of 0 nothing is divided. */
static inline simt_divisor pool_divisor(int64_t by) {
    simt_divisor d = simt_divisor_of(by > 0 ? by : 1);
    d.by = by;
    return d;
}

static inline pool_axis pool_axis_of(const trine_call *call, int X, int Y, int axis, int32_t kernel, int32_t stride,
                                     int32_t pad, int32_t dilation) {
    return (pool_axis){ pool_divisor(call->tensor[X].shape[axis]),
                        pool_divisor(call->tensor[Y].shape[axis]),
                        simt_divisor_of(stride ? stride : kernel),
                        simt_divisor_of(dilation),
                        kernel,
                        pad };
}

static inline int64_t pool_piece(trine_dtype type) { return POOL_BYTES / (int64_t)trine_dtype_size(type); }

static inline pool_view pool_view_of(const trine_tensor *t, int64_t piece) {
    if (t == NULL) return (pool_view){ 0 };
    pool_view v = { t->data, t->stride[0], t->stride[1], t->stride[2], t->stride[3], t->stride[3] == 1 };
    const int64_t vector = pool_piece(t->dtype);
    v.whole = v.whole && t->shape[3] % piece == 0 && (uintptr_t)t->data % POOL_BYTES == 0;
    for (int d = 0; d < 3; d++) v.whole = v.whole && (t->shape[d] <= 1 || t->stride[d] % vector == 0);
    return v;
}

/* Is all that is counted of an axis below 2^30? */
static inline bool pool_axis_narrow(const pool_axis *a) {
    const int64_t most = INT64_C(1) << 30;
    return a->in.by < most && a->out.by < most / a->stride.by && a->kernel < most / a->dilation.by;
}

static inline pool_params pool_params_of(const trine_call *call, int X, int Y, int OTHER, pool_axis h, pool_axis w,
                                         int32_t kind) {
    const trine_tensor *const x = &call->tensor[X], *const y = &call->tensor[Y];
    const int64_t piece = pool_piece(x->dtype), pieces = simt_blocks(x->shape[3], piece), most = INT64_C(1) << 31;
    pool_params p = { .h = h,
                      .w = w,
                      .x = pool_view_of(x, piece),
                      .y = pool_view_of(y, piece),
                      .other = pool_view_of(trine_call_given(call, OTHER), piece),
                      .n = x->shape[0],
                      .c = x->shape[3],
                      .pieces = pool_divisor(pieces),
                      .windows = x->shape[0] * y->shape[1] * y->shape[2] * pieces,
                      .places = x->shape[0] * x->shape[1] * x->shape[2] * pieces,
                      .kind = kind,
                      .own = (int32_t)piece,
                      .across = x->stride[3] != 1 && x->stride[2] == 1 };
    p.narrow = p.windows < most && p.places < most && pool_axis_narrow(&h) && pool_axis_narrow(&w) &&
               h.kernel * w.kernel < most && h.in.by * w.in.by < most;
    p.codes.size = !p.narrow ? 8 : h.kernel * w.kernel < 1 << 16 ? 2 : 4;
    return p;
}

/* A channel for each thread. */
static inline void pool_set_single(pool_params *p) {
    p->windows = p->windows / (p->pieces.by > 0 ? p->pieces.by : 1) * p->c;
    p->pieces = pool_divisor(p->c), p->own = 1;
    p->x.whole = p->y.whole = p->other.whole = false;
    p->narrow = p->narrow && p->windows < INT64_C(1) << 31;
}

/* Of the arguments of either op. */
#define POOL_PARAMS(call, args, X, Y, OTHER) \
    pool_params_of( \
        call, X, Y, OTHER, \
        pool_axis_of(call, X, Y, 1, (args)->kernel_h, (args)->stride_h, (args)->pad_top, (args)->dilation_h), \
        pool_axis_of(call, X, Y, 2, (args)->kernel_w, (args)->stride_w, (args)->pad_left, (args)->dilation_w), \
        (args)->kind)

#endif
