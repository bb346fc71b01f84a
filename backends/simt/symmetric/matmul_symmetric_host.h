/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of matmul_symmetric share. */
#ifndef TRINE_SIMT_MATMUL_SYMMETRIC_HOST_H
#define TRINE_SIMT_MATMUL_SYMMETRIC_HOST_H

#include "backends/simt/core/host.h"
#include "matmul_symmetric.h"
#include "spec/places/matmul_symmetric.h"

static inline int symmetric_side(const trine_call *call) {
    return call->type[MATMUL_SYMMETRIC_TYPE_T] == TRINE_F64 ? SYMMETRIC_SIDE_F64 : SYMMETRIC_SIDE;
}

/* Of tiles of `side`. */
static inline symmetric_params symmetric_params_of(const trine_call *call, int side) {
    const trine_matmul_symmetric_args *args = call->args;
    const trine_tensor *a = &call->tensor[MATMUL_SYMMETRIC_A], *d = &call->tensor[MATMUL_SYMMETRIC_D],
                       *c = trine_call_given(call, MATMUL_SYMMETRIC_C);
    const int64_t size = (int64_t)trine_dtype_size(a->dtype), m = call->dim[MATMUL_SYMMETRIC_DIM_M],
                  down = simt_blocks(m, side);
    symmetric_params p = { .a = a->data,
                           .d = { .data = d->data, .batch = d->stride[0], .row = d->stride[1] },
                           .batch = a->stride[0],
                           .lane = a->stride[1],
                           .along = a->stride[2],
                           .m = m,
                           .k = call->dim[MATMUL_SYMMETRIC_DIM_K],
                           .tiles = down * (down + 1) / 2,
                           .alpha = args->alpha + 0.0f,
                           .beta = args->beta + 0.0f,
                           .across = a->stride[2] != 1 && a->stride[1] == 1 };
    if (c) p.c = (simt_rows){ .data = c->data, .batch = c->stride[0], .row = c->stride[1] };
    const int64_t line = p.across ? p.along : p.lane;
    p.aligned = (intptr_t)a->data % 16 == 0 && line * size % 16 == 0 && p.batch * size % 16 == 0;
    const int64_t out = (int64_t)trine_dtype_size(d->dtype);
    p.whole = (intptr_t)d->data % 16 == 0 && d->stride[1] * out % 16 == 0 && d->stride[0] * out % 16 == 0;
    return p;
}

/* Without matrix units. */
static inline trine_status symmetric_launch(const trine_call *call) {
    const symmetric_params p = symmetric_params_of(call, symmetric_side(call));
    const simt_function function = { .type = { call->type[MATMUL_SYMMETRIC_TYPE_T],
                                               call->type[MATMUL_SYMMETRIC_TYPE_O] } };
    return simt_launch(call, &function, call->dim[MATMUL_SYMMETRIC_DIM_G] * p.tiles, SIMT_THREADS, &p, sizeof p);
}

static inline void symmetric_edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_M, SIMT_VECTOR);
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_M, symmetric_side(call));
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, SIMT_VECTOR);
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, SYMMETRIC_STEP / symmetric_side(call));
}

#endif
