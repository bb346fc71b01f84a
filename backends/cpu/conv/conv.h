/* SPDX-License-Identifier: Apache-2.0 */
/* What the convolutions of the CPU share: their geometry as the call tells it, an image being a volume of one plane. */
#ifndef TRINE_CPU_CONV_H
#define TRINE_CPU_CONV_H

#include "depthwise.h"
#include "planes.h"

typedef struct conv_call {
    const trine_call *call;
    const trine_tensor *x, *weight, *y; /* y: or dy */
    int64_t n, c, k, cg, kg, groups;    /* kg, cg: channels of a group, of y and of x */
    int64_t in[3], taps[3], out[3], stride[3], pad[3], dilation[3];
} conv_call;

/* From images, height and width stand in the last two places. */
static inline conv_call conv_call_of(const trine_call *call, const trine_tensor *x, const trine_tensor *weight,
                                     const trine_tensor *y, const int32_t *stride, const int32_t *pad,
                                     const int32_t *dilation) {
    const int rank = x->rank, axes = rank - 2;
    conv_call c = { .call = call,
                    .x = x,
                    .weight = weight,
                    .y = y,
                    .n = x->shape[0],
                    .c = x->shape[rank - 1],
                    .k = y->shape[rank - 1],
                    .cg = weight->shape[rank - 1] };
    c.groups = c.c > 0 ? c.c / c.cg : 1, c.kg = c.k / c.groups;
    for (int d = 0; d < 3; d++) {
        const int at = d - 3 + axes;
        const bool there = at >= 0;
        c.in[d] = there ? x->shape[1 + at] : 1, c.taps[d] = there ? weight->shape[1 + at] : 1;
        c.out[d] = there ? y->shape[1 + at] : 1;
        c.stride[d] = there ? stride[at] : 1, c.pad[d] = there ? pad[at] : 0, c.dilation[d] = there ? dilation[at] : 1;
    }
    return c;
}

static inline conv_view conv_view_of(const trine_tensor *t) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    conv_view v = { .data = t->data, .batch = t->stride[0] * size, .channel = t->stride[t->rank - 1] * size };
    for (int d = 0; d < 3; d++) v.axis[d] = t->rank - 4 + d > 0 ? t->stride[t->rank - 4 + d] * size : 0;
    return v;
}

/* The product of the forward. */
static inline conv_product conv_forward_of(const conv_call *c, const trine_tensor *bias) {
    const int64_t size = (int64_t)trine_dtype_size(c->x->dtype);
    const conv_view w = conv_view_of(c->weight);
    conv_product a = { .call = c->call,
                       .x = { .from = conv_view_of(c->x), .channels = c->cg, .size = size },
                       .w = { .data = w.data,
                              .group = c->kg * w.batch,
                              .lane = w.batch,
                              .channel = w.channel,
                              .tap = { w.axis[0], w.axis[1], w.axis[2] },
                              .step = { 1, 1, 1 } },
                       .y = { .view = conv_view_of(c->y), .step = { 1, 1, 1 } },
                       .bias = bias,
                       .type = c->x->dtype,
                       .n = c->n,
                       .groups = c->groups,
                       .lanes = c->kg };
    for (int d = 0; d < 3; d++)
        a.x.axis[d] = (conv_axis){ c->in[d], c->out[d], c->taps[d], -c->pad[d], c->stride[d], c->dilation[d] };
    conv_complete(&a);
    return a;
}

static inline size_t conv_bytes(const conv_product *a) {
    return planes_takes(a) ? planes_bytes(a) : conv_single(a) ? depthwise_bytes(a) : conv_product_bytes(a);
}
static inline void conv_do(const conv_product *a) {
    if (planes_takes(a))
        planes_run(a);
    else if (conv_single(a))
        depthwise_run(a);
    else
        conv_product_run(a);
}

static inline size_t conv_forward_workspace(const conv_call *c, const trine_tensor *bias) {
    const conv_product a = conv_forward_of(c, bias);
    return conv_bytes(&a);
}

static inline trine_status conv_forward_launch(const conv_call *c, const trine_tensor *bias) {
    const conv_product a = conv_forward_of(c, bias);
    conv_do(&a);
    return TRINE_OK;
}

#endif
