/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of conv2d_backward's kernels share: ways of the gradients by x and by weights, and the one by the
 * bias. */
#ifndef TRINE_SIMT_CONV2D_BACKWARD_HOST_H
#define TRINE_SIMT_CONV2D_BACKWARD_HOST_H

#include "conv_host.h"
#include "spec/alike.h"
#include "spec/places/conv2d_backward.h"

TRINE_ALIKE(CONV2D_BACKWARD_TYPE_T, SIMT_FIRST_TYPE);

/* How a kernel makes two of the gradients: what sets tiles and slices, which say what the workspace holds, and what
 * launches them. */
typedef struct backward_way {
    void (*set_dx)(const trine_call *call, conv_params *p);
    trine_status (*dx)(const trine_call *call, conv_params *p);
    void (*set_weights)(const trine_call *call, conv_gradient_params *p);
    trine_status (*weights)(const trine_call *call, conv_gradient_params *p);
} backward_way;

static inline conv_call backward_call_of(const trine_call *call) {
    const trine_conv2d_backward_args *args = call->args;
    return (conv_call){ &call->tensor[CONV2D_BACKWARD_X],  &call->tensor[CONV2D_BACKWARD_WEIGHT],
                        &call->tensor[CONV2D_BACKWARD_DY], { args->stride_h, args->stride_w },
                        { args->pad_top, args->pad_left }, { args->dilation_h, args->dilation_w } };
}

/* Slices of the positions for so many blocks each, and with so many positions at least. */
static inline void backward_set_slices(conv_gradient_params *p, int64_t blocks, int64_t least) {
    int64_t slices = 1;
    while (slices < CONV_SLICES && slices * blocks < CONV_BLOCKS && p->positions / (2 * slices) >= least) slices *= 2;
    p->slices = slices;
    p->slice = simt_blocks(p->positions, p->slices);
}

static inline conv_gradient_params backward_common(const conv_call *c) {
    conv_gradient_params p = { .x = conv_view_of(c->x), .dy = conv_view_of(c->y), .n = c->x->shape[0] };
    conv_axes(c, false, p.axis);
    p.positions = p.n * p.axis[0].out * p.axis[1].out * p.axis[2].out;
    return p;
}

/* All but tiles and slices. */
static inline conv_gradient_params backward_weights_of(const trine_call *call, const trine_tensor *dweight) {
    const conv_call c = backward_call_of(call);
    conv_gradient_params p = backward_common(&c);
    const int64_t vector = conv_vector(dweight->dtype);
    p.groups = conv_groups(&c), p.rows = c.y->shape[3] / p.groups, p.channels = c.weight->shape[3];
    p.elements = p.axis[1].taps * p.axis[2].taps * p.channels;
    p.to = conv_view_of(dweight);
    p.across = p.x.channel != 1 && p.x.axis[2] == 1;
    p.pieces = conv_pieces(&p.x, p.x.channel, p.x.batch, p.channels);
    p.dy_pieces = conv_pieces(&p.dy, p.dy.channel, p.dy.batch, p.rows);
    p.whole = conv_whole(&p.x, p.x.channel, p.x.batch, p.groups, vector);
    p.dy_whole = conv_whole(&p.dy, p.dy.channel, p.dy.batch, p.groups, vector);
    return p;
}

/* A patch of one element that is 1. */
static inline conv_gradient_params backward_bias_of(const trine_call *call, const trine_tensor *dbias) {
    enum { LEAST = CONV_POSITIONS / 4 };
    const conv_call c = backward_call_of(call);
    conv_gradient_params p = backward_common(&c);
    p.groups = 1, p.rows = c.y->shape[3], p.channels = p.elements = 1;
    for (int d = 0; d < 3; d++) p.axis[d].taps = 1;
    p.to = (conv_view){ .data = dbias->data, .batch = dbias->stride[0] };
    p.dy_whole = conv_whole(&p.dy, p.dy.channel, p.dy.batch, p.rows, conv_vector(c.y->dtype));
    p.down = 1, p.right = simt_blocks(p.rows, CONV_CHANNELS);
    backward_set_slices(&p, p.right, LEAST);
    return p;
}

static inline size_t backward_sums_bytes(const trine_call *call, const conv_gradient_params *p) {
    const size_t size = call->tensor[CONV2D_BACKWARD_DY].dtype == TRINE_F64 ? 8 : 4;
    return (size_t)(p->slices * p->groups * p->rows * p->elements) * size;
}

static inline size_t backward_workspace(const trine_call *call) {
    const backward_way *way = call->self;
    if (call->empty) return 0;
    const trine_tensor *dx = trine_call_given(call, CONV2D_BACKWARD_DX),
                       *dweight = trine_call_given(call, CONV2D_BACKWARD_DWEIGHT),
                       *dbias = trine_call_given(call, CONV2D_BACKWARD_DBIAS);
    size_t most = 0, bytes[3] = { 0 };
    if (dx) {
        const conv_call c = backward_call_of(call);
        conv_params p = conv_params_of(&c, dx, NULL);
        way->set_dx(call, &p);
        bytes[0] = conv_sums_bytes(&p, dx->dtype);
    }
    if (dweight) {
        conv_gradient_params p = backward_weights_of(call, dweight);
        way->set_weights(call, &p);
        bytes[1] = backward_sums_bytes(call, &p);
    }
    if (dbias) {
        const conv_gradient_params p = backward_bias_of(call, dbias);
        bytes[2] = backward_sums_bytes(call, &p);
    }
    for (int i = 0; i < 3; i++) most = bytes[i] > most ? bytes[i] : most;
    return most;
}

/* Sums of slices by one function, and their sums. */
static inline trine_status backward_launch_sums(const trine_call *call, conv_gradient_params *p,
                                                const simt_function *sums, int threads, int64_t blocks,
                                                trine_dtype out) {
    const simt_function end = { .step = "end", .type = { out } };
    const int64_t count = p->groups * p->rows * p->elements;
    p->sums = call->workspace;
    if (count == 0) return TRINE_OK;
    const trine_status status = simt_launch(call, sums, blocks, threads, p, sizeof *p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &end, simt_blocks(count, SIMT_THREADS), SIMT_THREADS, p, sizeof *p);
}

static inline trine_status backward_launch(const trine_call *call) {
    const backward_way *way = call->self;
    const trine_tensor *dx = trine_call_given(call, CONV2D_BACKWARD_DX),
                       *dweight = trine_call_given(call, CONV2D_BACKWARD_DWEIGHT),
                       *dbias = trine_call_given(call, CONV2D_BACKWARD_DBIAS);
    trine_status status = TRINE_OK;
    if (dx) {
        const conv_call c = backward_call_of(call);
        conv_params p = conv_params_of(&c, dx, NULL);
        way->set_dx(call, &p);
        status = way->dx(call, &p);
    }
    if (dweight && status == TRINE_OK) {
        conv_gradient_params p = backward_weights_of(call, dweight);
        way->set_weights(call, &p);
        status = way->weights(call, &p);
    }
    if (dbias && status == TRINE_OK) {
        conv_gradient_params p = backward_bias_of(call, dbias);
        const simt_function bias = { .step = "bias", .type = { call->tensor[CONV2D_BACKWARD_DY].dtype } };
        status = backward_launch_sums(call, &p, &bias, SIMT_THREADS, p.slices * p.right, dbias->dtype);
    }
    return status;
}

static inline const char *backward_refuse(const trine_call *call) {
    const int64_t *dim = call->dim, taps = dim[CONV2D_BACKWARD_DIM_R] * dim[CONV2D_BACKWARD_DIM_S];
    const char *why = conv_refuse_patches(&call->tensor[CONV2D_BACKWARD_WEIGHT]);
    if (why) return why;
    return taps > 0 && dim[CONV2D_BACKWARD_DIM_K] > INT32_MAX / taps ? "more than 2^31 - 1 products for an element"
                                                                     : NULL;
}

/* ------------------------------------------------------------------------------------- tiles, or one sum a thread */

static const conv_names backward_names = { "dx_few", "dx", "dx_depthwise", "dx_end" };

static inline void backward_set_dx(const trine_call *call, conv_params *p) {
    (void)call;
    conv_set_tiles(p);
}
static inline trine_status backward_dx(const trine_call *call, conv_params *p) {
    return conv_launch(call, p, &backward_names);
}
static inline bool backward_few(const conv_gradient_params *p) { return p->rows <= CONV_FEW; }
static inline void backward_set_weights(const trine_call *call, conv_gradient_params *p) {
    (void)call;
    if (backward_few(p))
        p->down = simt_blocks(p->groups * p->rows * p->elements, SIMT_THREADS), p->right = 1;
    else
        p->down = simt_blocks(p->rows, CONV_TILE), p->right = simt_blocks(p->elements, CONV_TILE);
    backward_set_slices(p, backward_few(p) ? p->down : p->down * p->right * p->groups, CONV_POSITIONS);
}
static inline trine_status backward_weights(const trine_call *call, conv_gradient_params *p) {
    const trine_dtype type = call->type[SIMT_FIRST_TYPE];
    const simt_function sums = { .step = backward_few(p) ? "few" : "tiles", .type = { type } };
    return backward_launch_sums(call, p, &sums, SIMT_THREADS,
                                p->slices * p->down * (backward_few(p) ? 1 : p->right * p->groups), type);
}
static const backward_way backward_tiles = { backward_set_dx, backward_dx, backward_set_weights, backward_weights };

static inline void backward_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, CONV_FEW);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, CONV_TILE);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, CONV_FEW);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, CONV_TILE);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_Q, 2 * CONV_POSITIONS);
}

/* ----------------------------------------------------------------------------------------- each channel is a group */

static inline const char *backward_depthwise_refuse(const trine_call *call) {
    const conv_call c = backward_call_of(call);
    conv_params p = conv_params_of(&c, c.y, NULL);
    const trine_tensor *dx = trine_call_given(call, CONV2D_BACKWARD_DX);
    const char *why = backward_refuse(call);
    if (why == NULL) why = conv_depthwise_refuse(&p);
    if (why != NULL || dx == NULL) return why;
    p = conv_params_of(&c, dx, NULL);
    return conv_depthwise_refuse(&p);
}
static inline trine_status backward_depthwise_dx(const trine_call *call, conv_params *p) {
    return conv_launch_depthwise(call, p, &backward_names);
}
static inline void backward_depthwise_set_weights(const trine_call *call, conv_gradient_params *p) {
    (void)call;
    p->down = simt_blocks(p->elements, CONV_OWN_TAPS), p->right = simt_blocks(p->groups, CONV_CHANNELS);
    backward_set_slices(p, p->down * p->right, CONV_POSITIONS);
}
static inline trine_status backward_depthwise_weights(const trine_call *call, conv_gradient_params *p) {
    const trine_dtype type = call->type[SIMT_FIRST_TYPE];
    const simt_function sums = { .step = "depthwise", .type = { type } };
    return backward_launch_sums(call, p, &sums, SIMT_THREADS, p->slices * p->down * p->right, type);
}
static const backward_way backward_depthwise = { backward_set_dx, backward_depthwise_dx, backward_depthwise_set_weights,
                                                 backward_depthwise_weights };

static inline void backward_depthwise_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_C, CONV_CHANNELS);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_R, CONV_WEIGHTS);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_W, CONV_ROW);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_Q, 2 * CONV_POSITIONS);
}

#define BACKWARD_KERNEL(text, kernel_refuse, way, kernel_edges) \
    { .name = SIMT_NAME text, \
      .refuse = kernel_refuse, \
      .workspace = backward_workspace, \
      .launch = backward_launch, \
      .self = &way, \
      .edges = kernel_edges }
#define BACKWARD_DEPTHWISE \
    BACKWARD_KERNEL("_depthwise", backward_depthwise_refuse, backward_depthwise, backward_depthwise_edges)
#define BACKWARD_TILES BACKWARD_KERNEL("", backward_refuse, backward_tiles, backward_edges)

#endif
