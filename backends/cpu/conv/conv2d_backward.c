/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward on the CPU: dx is a convolution of dy for each residue of positions by the strides, dweight a product
 * over positions, dbias a sum. */
#include "conv.h"
#include "depthwise_gradient.h"
#include "planes_gradient.h"
#include "spec/places/conv2d_backward.h"

static conv_call geometry(const trine_call *call) {
    const trine_conv2d_backward_args *args = call->args;
    const int32_t stride[] = { args->stride_h, args->stride_w }, pad[] = { args->pad_top, args->pad_left },
                  dilation[] = { args->dilation_h, args->dilation_w };
    return conv_call_of(call, &call->tensor[CONV2D_BACKWARD_X], &call->tensor[CONV2D_BACKWARD_WEIGHT],
                        &call->tensor[CONV2D_BACKWARD_DY], stride, pad, dilation);
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* Positions `first`, first + stride, ... of x along axis d: the taps that lead from them to places of dy, and which
 * places those are. */
static void set_residue(const conv_call *c, conv_product *a, int d, int64_t first) {
    const int64_t stride = c->stride[d], common = common_divisor(c->dilation[d], stride), every = stride / common;
    int64_t tap = 0;
    while (tap < every && tap < c->taps[d] && (first + c->pad[d] - tap * c->dilation[d]) % stride != 0) tap++;
    const bool none = tap >= every || tap >= c->taps[d];
    a->x.axis[d] = (conv_axis){ .in = c->out[d],
                                .positions = conv_up(c->in[d] - first, stride),
                                .taps = none ? 0 : conv_up(c->taps[d] - tap, every),
                                .first = none ? 0 : (first + c->pad[d] - tap * c->dilation[d]) / stride,
                                .step = 1,
                                .dilation = -(c->dilation[d] / common) };
    a->w.first[d] = tap, a->w.step[d] = every;
    a->y.first[d] = first, a->y.step[d] = stride;
}

/* Residues of all positions, by height and width. */
static int64_t residues(const conv_call *c, int d) { return conv_least(c->stride[d], c->in[d]); }

static conv_product dx_of(const conv_call *c, const trine_tensor *dx, int64_t residue) {
    const conv_view w = conv_view_of(c->weight);
    conv_product a = {
        .call = c->call,
        .x = { .from = conv_view_of(c->y), .channels = c->kg, .size = (int64_t)trine_dtype_size(c->x->dtype) },
        .w = { .data = w.data,
               .group = c->kg * w.batch,
               .lane = w.channel,
               .channel = w.batch,
               .tap = { w.axis[0], w.axis[1], w.axis[2] } },
        .y = { .view = conv_view_of(dx) },
        .type = c->x->dtype,
        .n = c->n,
        .groups = c->groups,
        .lanes = c->cg
    };
    set_residue(c, &a, 0, 0);
    set_residue(c, &a, 1, residue / residues(c, 2));
    set_residue(c, &a, 2, residue % residues(c, 2));
    conv_complete(&a);
    return a;
}

static conv_gradient dweight_of(const conv_call *c, const trine_tensor *dweight) {
    const int64_t size = (int64_t)trine_dtype_size(c->x->dtype);
    conv_gradient a = { .call = c->call,
                        .x = { .from = conv_view_of(c->x), .channels = c->cg, .size = size },
                        .dy = { .from = conv_view_of(c->y), .channels = c->kg, .size = size },
                        .to = conv_view_of(dweight),
                        .type = c->x->dtype,
                        .n = c->n,
                        .groups = c->groups };
    for (int d = 0; d < 3; d++) {
        a.x.axis[d] = (conv_axis){ c->in[d], c->out[d], c->taps[d], -c->pad[d], c->stride[d], c->dilation[d] };
        a.dy.axis[d] = (conv_axis){ c->out[d], c->out[d], 1, 0, 1, 1 };
    }
    gradient_complete(&a);
    return a;
}

static size_t weight_gradient_bytes(const conv_call *c, const conv_gradient *a) {
    const conv_product forward = conv_forward_of(c, NULL);
    if (gradient_single(a)) return depthwise_gradient_bytes(a);
    return planes_gradient_takes(a, &forward) ? planes_gradient_bytes(a, &forward) : gradient_bytes(a);
}

static void weight_gradient_run(const conv_call *c, const conv_gradient *a) {
    const conv_product forward = conv_forward_of(c, NULL);
    if (gradient_single(a))
        depthwise_gradient_run(a);
    else if (planes_gradient_takes(a, &forward))
        planes_gradient_run(a, &forward);
    else
        gradient_run(a);
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const conv_call c = geometry(call);
    const trine_tensor *dx = trine_call_given(call, CONV2D_BACKWARD_DX),
                       *dweight = trine_call_given(call, CONV2D_BACKWARD_DWEIGHT);
    size_t most = 0;
    for (int64_t i = 0; dx && i < residues(&c, 1) * residues(&c, 2); i++) {
        const conv_product a = dx_of(&c, dx, i);
        const size_t bytes = conv_bytes(&a);
        if (bytes > most) most = bytes;
    }
    if (dweight) {
        const conv_gradient a = dweight_of(&c, dweight);
        const size_t bytes = weight_gradient_bytes(&c, &a);
        if (bytes > most) most = bytes;
    }
    return most;
}

static trine_status launch(const trine_call *call) {
    const conv_call c = geometry(call);
    const trine_tensor *dx = trine_call_given(call, CONV2D_BACKWARD_DX),
                       *dweight = trine_call_given(call, CONV2D_BACKWARD_DWEIGHT),
                       *dbias = trine_call_given(call, CONV2D_BACKWARD_DBIAS);
    for (int64_t i = 0; dx && i < residues(&c, 1) * residues(&c, 2); i++) {
        const conv_product a = dx_of(&c, dx, i);
        conv_do(&a);
    }
    const conv_gradient a = dweight_of(&c, dweight ? dweight : c.weight);
    if (dweight) weight_gradient_run(&c, &a);
    if (dbias) {
        patches dy = a.dy;
        dy.from = a.dy_source.from, dy.size = (int64_t)trine_dtype_size(a.type);
        bias_gradient_run(&(bias_gradient){ call, dbias, dy, c.n, c.k });
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const unit_kind kind = unit_of(call->type[CONV2D_BACKWARD_TYPE_T]);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, tile_columns(kind));
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, GRADIENT_ROWS);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, unit_depth(kind));
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, GRADIENT_COLUMNS);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_Q, GRADIENT_UNITS * unit_depth(kind));
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_W, TASK_ROWS);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_W, PLANE_WIDTH);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, PLANE_BESIDE);
}

CPU_KERNELS(conv2d_backward) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
