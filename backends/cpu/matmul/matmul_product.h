/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix product as its kernels see it. */
#ifndef TRINE_CPU_MATMUL_PRODUCT_H
#define TRINE_CPU_MATMUL_PRODUCT_H

#include "backends/cpu/core/cpu.h"
#include "matmul_finish.h"
#include "matmul_tile.h"

/* Places in the table of the specification: matmul's, or with PACKED_B those of matmul_packed. */
#ifdef PACKED_B
#include "spec/places/matmul_packed.h"
#define PLACE(name) MATMUL_PACKED_##name
typedef trine_matmul_packed_args product_args;
#else
#include "spec/places/matmul.h"
#define PLACE(name) MATMUL_##name
typedef trine_matmul_args product_args;
#endif

static inline int64_t divide_up(int64_t x, int64_t by) { return (x + by - 1) / by; }

typedef struct product {
    int64_t g, m, n, k;
    unit_kind kind;
    view a, b; /* b's lanes are its columns */
    target to;
} product;

static inline view view_of(const trine_tensor *t, bool columns) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    const int64_t lane = t->stride[columns ? 2 : 1], along = t->stride[columns ? 1 : 2];
    return (view){ .data = t->data,
                   .dtype = t->dtype,
                   .batch = t->shape[0] > 1 ? t->stride[0] * size : 0,
                   .lane = lane * size,
                   .along = along * size,
                   .across = along != 1 && lane == 1 };
}

static inline scales scales_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return call->present >> tensor & 1 ? (scales){ t->data, t->stride[0], t->stride[1] } : (scales){ 0 };
}

static inline target target_of(const trine_call *call) {
    const product_args *args = call->args;
    const trine_tensor *d = &call->tensor[PLACE(D)], *c = &call->tensor[PLACE(C)], *bias = &call->tensor[PLACE(BIAS)];
    const int64_t size = (int64_t)trine_dtype_size(d->dtype);
    target t = { .d = d->data,
                 .d_batch = d->stride[0] * size,
                 .d_row = d->stride[1] * size,
                 .type = d->dtype,
                 .bias_type = bias->dtype,
                 .alpha = args->alpha + 0.0f,
                 .beta = args->beta + 0.0f,
                 .activation = args->activation, /* + 0: -0 stands for 0 */
                 .rows = scales_of(call, PLACE(A_SCALE)),
                 .columns = scales_of(call, PLACE(B_SCALE)) };
    if (call->present >> PLACE(C) & 1)
        t.c = c->data, t.c_batch = c->stride[0] * size, t.c_row = c->stride[1] * size, t.c_column = c->stride[2] * size;
    if (call->present >> PLACE(BIAS) & 1) t.bias = bias->data;
    return t;
}

static inline view view_of_b(const trine_call *call) {
#ifdef PACKED_B
    const trine_tensor *t = &call->tensor[MATMUL_PACKED_PACKED];
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    return (view){ .data = t->data,
                   .dtype = t->dtype,
                   .batch = t->shape[0] > 1 ? t->stride[0] * size : 0,
                   .along = t->stride[2] * size,
                   .group = t->stride[1] * size };
#else
    return view_of(&call->tensor[MATMUL_B], true);
#endif
}

static inline product product_of(const trine_call *call) {
    return (product){ .g = call->dim[PLACE(DIM_G)],
                      .m = call->dim[PLACE(DIM_M)],
                      .n = call->dim[PLACE(DIM_N)],
                      .k = call->dim[PLACE(DIM_K)],
                      .kind = unit_of(call->tensor[PLACE(A)].dtype),
                      .a = view_of(&call->tensor[PLACE(A)], false),
                      .b = view_of_b(call),
                      .to = target_of(call) };
}

/* Where the whole tile at an element of d may be put at once, or nowhere. */
static inline tile_target product_put(const product *p, int64_t batch, int64_t row, int64_t column) {
    const target *t = &p->to;
    return (tile_target){ t->d + batch * t->d_batch + row * t->d_row + column * 4, t->d_row, t->alpha };
}

/* Whether a tile's rows can be read where they lie: lanes a multiple of 4 KiB apart share a set of L1, which holds 8
 * to 12 lines, for one thread or two. */
static inline bool rows_apart(const view *v) { return ROWS <= 6 || v->lane % 4096 != 0; }

/* What bounds the threads worth having: bytes, or the time of four flops as one of them. */
static inline int product_team(const trine_call *call, const product *p, int64_t tasks) {
    const double flops = 2.0 * (double)p->g * (double)p->m * (double)p->n * (double)p->k;
    const double bytes = (double)p->g * ((double)p->m * (double)p->k + (double)p->n * (double)p->k) *
                         (double)trine_dtype_size(p->a.dtype);
    return cpu_team(call, tasks, (int64_t)fmin(fmax(bytes, flops / 4), 0x1p62));
}

/* Units of k, and integers: from there on sums may leave 32 bits if one operand has 128 added, or if none has. */
static inline void product_edges(trine_kernel_edges *edges, unit_kind kind) {
    enum { LOWEST = 128, SHIFTED = 127 + 128 };
    trine_kernel_edge(edges, PLACE(DIM_K), unit_depth(kind));
    if (kind != UNIT_I8 && kind != UNIT_I16) return;
    trine_kernel_edge(edges, PLACE(DIM_K), INT32_MAX / (SHIFTED * LOWEST));
    trine_kernel_edge(edges, PLACE(DIM_K), INT32_MAX / (LOWEST * LOWEST));
}

static inline const char *product_refuse(const trine_call *call) {
    const product_args *args = call->args;
    if (call->tensor[PLACE(A)].dtype != TRINE_I8) return NULL;
    const bool integers = fabsf(args->alpha) <= 0x1p24f && args->alpha == rintf(args->alpha) &&
                          fabsf(args->beta) <= 0x1p24f && args->beta == rintf(args->beta);
    if (call->present >> PLACE(A_SCALE) & 1 || call->present >> PLACE(B_SCALE) & 1) return "i8 products take no scales";
    if (!integers) return "i8 products take integers up to 2^24 for alpha and beta";
    return args->activation > TRINE_ACTIVATION_RELU ? "i8 products take no activation but relu" : NULL;
}

#endif
