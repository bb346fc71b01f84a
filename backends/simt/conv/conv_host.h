/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that convolutions share. */
#ifndef TRINE_SIMT_CONV_HOST_H
#define TRINE_SIMT_CONV_HOST_H

#include "backends/simt/core/host.h"
#include "conv.h"

/* A convolution as the call tells it; height and width stand in the last two places. y: or dy. */
typedef struct conv_call {
    const trine_tensor *x, *weight, *y;
    const int32_t *stride, *pad, *dilation;
} conv_call;

static inline conv_view conv_view_of(const trine_tensor *t) {
    conv_view v = { .data = t->data, .batch = t->stride[0], .channel = t->stride[t->rank - 1] };
    for (int d = 0; d < 3; d++) v.axis[d] = t->rank - 4 + d > 0 ? t->stride[t->rank - 4 + d] : 0;
    return v;
}

static inline void conv_axes(const conv_call *c, bool transposed, conv_axis *axis) {
    const int rank = c->x->rank;
    for (int d = 0; d < 3; d++) {
        const int at = d - 3 + rank - 2;
        axis[d] = (conv_axis){ 1, 1, 1, 1, 0, 1, 1 };
        if (at < 0) continue;
        const int64_t x = c->x->shape[1 + at], y = c->y->shape[1 + at];
        axis[d] = (conv_axis){ transposed ? y : x,
                               transposed ? x : y,
                               c->weight->shape[1 + at],
                               c->stride[at],
                               c->pad[at],
                               c->dilation[at],
                               1 };
        if (transposed) axis[d].residues = axis[d].stride < x ? axis[d].stride : x;
    }
}

static inline int64_t conv_groups(const conv_call *c) {
    const int64_t channels = c->x->shape[c->x->rank - 1];
    return channels > 0 ? channels / c->weight->shape[c->weight->rank - 1] : 1;
}

/* Are `count` neighbours along a stride of 1 whole pieces of 16 bytes, wherever other strides lead? */
static inline bool conv_pieces(const conv_view *v, int64_t inner, int64_t outer, int64_t count) {
    bool whole = inner == 1 && count % 8 == 0 && (uintptr_t)v->data % 16 == 0 && outer % 8 == 0;
    for (int d = 0; d < 3; d++) whole = whole && v->axis[d] % 8 == 0;
    return whole;
}

/* The forward, or the gradient by x, which is written to `to`. */
static inline conv_params conv_params_of(const conv_call *c, const trine_tensor *to, const trine_tensor *bias) {
    const bool transposed = to != c->y;
    const conv_view weight = conv_view_of(c->weight);
    const int64_t groups = conv_groups(c), cg = c->weight->shape[c->weight->rank - 1],
                  kg = c->y->shape[c->y->rank - 1] / groups;
    conv_params p = { .from = conv_view_of(transposed ? c->y : c->x),
                      .to = conv_view_of(to),
                      .weight = weight,
                      .group = kg * weight.batch,
                      .bias = bias ? bias->data : NULL,
                      .bias_step = bias ? bias->stride[0] : 0,
                      .n = c->x->shape[0],
                      .groups = groups,
                      .lanes = transposed ? cg : kg,
                      .channels = transposed ? kg : cg,
                      .transposed = transposed,
                      .wide_bias = bias && bias->dtype == TRINE_F32 };
    conv_axes(c, transposed, p.axis);
    if (transposed) p.weight.batch = weight.channel, p.weight.channel = weight.batch;
    p.pieces = conv_pieces(&p.from, p.from.channel, p.from.batch, p.channels);
    p.weight_pieces = conv_pieces(&weight, weight.channel, weight.batch, cg);
    p.across = p.from.channel != 1 && p.from.axis[2] == 1, p.to_across = p.to.channel != 1 && p.to.axis[2] == 1;
    return p;
}

static inline bool conv_few(const conv_params *p) { return p->lanes <= CONV_FEW; }

/* Launches it, by tiles or one sum a thread: steps of the op's functions. */
static inline trine_status conv_launch(const trine_call *call, conv_params *p, const char *few, const char *tiles) {
    int64_t positions = p->n, residues = 1;
    for (int d = 0; d < 3; d++) {
        residues *= p->axis[d].residues;
        positions *= p->axis[d].residues > 0 ? simt_blocks(p->axis[d].out, p->axis[d].residues) : 0;
    }
    const simt_function function = { .step = conv_few(p) ? few : tiles, .type = { call->type[SIMT_FIRST_TYPE] } };
    if (conv_few(p)) {
        p->down = simt_blocks(positions * p->groups * p->lanes, SIMT_THREADS), p->right = 1;
        return simt_launch(call, &function, residues * p->down, SIMT_THREADS, p, sizeof *p);
    }
    p->down = simt_blocks(positions, CONV_TILE), p->right = simt_blocks(p->lanes, CONV_TILE);
    return simt_launch(call, &function, residues * p->down * p->groups * p->right, SIMT_THREADS, p, sizeof *p);
}

static inline const char *conv_refuse_patches(const trine_tensor *weight) {
    int64_t elements = 1;
    for (int d = 1; d < weight->rank; d++)
        if (__builtin_mul_overflow(elements, weight->shape[d], &elements) || elements > INT32_MAX)
            return "patches of more than 2^31 - 1 elements";
    return NULL;
}

#endif
