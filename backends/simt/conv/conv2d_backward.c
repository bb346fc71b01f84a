/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward on devices: the host side. */
#include "conv_host.h"
#include "spec/alike.h"
#include "spec/places/conv2d_backward.h"

TRINE_ALIKE(CONV2D_BACKWARD_TYPE_T, SIMT_FIRST_TYPE);

typedef struct geometry {
    conv_call of;
    int32_t stride[2], pad[2], dilation[2];
} geometry;

static void geometry_of(const trine_call *call, geometry *g) {
    const trine_conv2d_backward_args *args = call->args;
    g->stride[0] = args->stride_h, g->stride[1] = args->stride_w;
    g->pad[0] = args->pad_top, g->pad[1] = args->pad_left;
    g->dilation[0] = args->dilation_h, g->dilation[1] = args->dilation_w;
    g->of = (conv_call){ &call->tensor[CONV2D_BACKWARD_X],
                         &call->tensor[CONV2D_BACKWARD_WEIGHT],
                         &call->tensor[CONV2D_BACKWARD_DY],
                         g->stride,
                         g->pad,
                         g->dilation };
}

static bool few(const conv_gradient_params *p) { return p->rows <= CONV_FEW; }

/* Slices of the positions for so many blocks each. */
static void set_slices(conv_gradient_params *p, int64_t blocks) {
    int64_t slices = 1;
    while (slices < CONV_SLICES && slices * blocks < CONV_BLOCKS && p->positions / (2 * slices) >= CONV_POSITIONS)
        slices *= 2;
    p->slices = slices;
    p->slice = simt_blocks(p->positions, p->slices);
}

static conv_gradient_params common(const conv_call *c) {
    conv_gradient_params p = { .x = conv_view_of(c->x), .dy = conv_view_of(c->y), .n = c->x->shape[0] };
    conv_axes(c, false, p.axis);
    p.positions = p.n * p.axis[0].out * p.axis[1].out * p.axis[2].out;
    return p;
}

static conv_gradient_params of_weights(const conv_call *c, const trine_tensor *dweight) {
    conv_gradient_params p = common(c);
    p.groups = conv_groups(c), p.rows = c->y->shape[3] / p.groups, p.channels = c->weight->shape[3];
    p.elements = p.axis[1].taps * p.axis[2].taps * p.channels;
    p.to = conv_view_of(dweight);
    p.across = p.x.channel != 1 && p.x.axis[2] == 1;
    if (few(&p))
        p.down = simt_blocks(p.groups * p.rows * p.elements, SIMT_THREADS), p.right = 1;
    else
        p.down = simt_blocks(p.rows, CONV_TILE), p.right = simt_blocks(p.elements, CONV_TILE);
    set_slices(&p, few(&p) ? p.down : p.down * p.right * p.groups);
    return p;
}

/* A patch of one element that is 1. */
static conv_gradient_params of_bias(const conv_call *c, const trine_tensor *dbias) {
    conv_gradient_params p = common(c);
    p.groups = 1, p.rows = c->y->shape[3], p.channels = p.elements = 1;
    for (int d = 0; d < 3; d++) p.axis[d].taps = 1;
    p.to = (conv_view){ .data = dbias->data, .batch = dbias->stride[0] };
    p.down = simt_blocks(p.rows, SIMT_THREADS), p.right = 1;
    set_slices(&p, p.down);
    return p;
}

static size_t sums_bytes(const trine_call *call, const conv_gradient_params *p) {
    const size_t size = call->tensor[CONV2D_BACKWARD_DY].dtype == TRINE_F64 ? 8 : 4;
    return (size_t)(p->slices * p->groups * p->rows * p->elements) * size;
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const trine_tensor *dweight = trine_call_given(call, CONV2D_BACKWARD_DWEIGHT),
                       *dbias = trine_call_given(call, CONV2D_BACKWARD_DBIAS);
    geometry g;
    geometry_of(call, &g);
    size_t most = 0;
    if (dweight) {
        const conv_gradient_params p = of_weights(&g.of, dweight);
        most = sums_bytes(call, &p);
    }
    if (dbias) {
        const conv_gradient_params p = of_bias(&g.of, dbias);
        if (sums_bytes(call, &p) > most) most = sums_bytes(call, &p);
    }
    return most;
}

static trine_status launch_sums(const trine_call *call, conv_gradient_params *p, const char *step, trine_dtype out) {
    const int64_t blocks = p->slices * p->down * (few(p) || step[0] == 'b' ? 1 : p->right * p->groups),
                  count = p->groups * p->rows * p->elements;
    const trine_dtype type = call->tensor[CONV2D_BACKWARD_DY].dtype;
    const simt_function sums = { .step = step, .type = { type } }, end = { .step = "end", .type = { out } };
    p->sums = call->workspace;
    if (count == 0) return TRINE_OK;
    const trine_status status = simt_launch(call, &sums, blocks, SIMT_THREADS, p, sizeof *p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &end, simt_blocks(count, SIMT_THREADS), SIMT_THREADS, p, sizeof *p);
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *dx = trine_call_given(call, CONV2D_BACKWARD_DX),
                       *dweight = trine_call_given(call, CONV2D_BACKWARD_DWEIGHT),
                       *dbias = trine_call_given(call, CONV2D_BACKWARD_DBIAS);
    trine_status status = TRINE_OK;
    geometry g;
    geometry_of(call, &g);
    if (dx) {
        conv_params p = conv_params_of(&g.of, dx, NULL);
        status = conv_launch(call, &p, "dx_few", "dx");
    }
    if (dweight && status == TRINE_OK) {
        conv_gradient_params p = of_weights(&g.of, dweight);
        status = launch_sums(call, &p, few(&p) ? "few" : "tiles", dweight->dtype);
    }
    if (dbias && status == TRINE_OK) {
        conv_gradient_params p = of_bias(&g.of, dbias);
        status = launch_sums(call, &p, "bias", dbias->dtype);
    }
    return status;
}

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim, taps = dim[CONV2D_BACKWARD_DIM_R] * dim[CONV2D_BACKWARD_DIM_S];
    const char *why = conv_refuse_patches(&call->tensor[CONV2D_BACKWARD_WEIGHT]);
    if (why) return why;
    return taps > 0 && dim[CONV2D_BACKWARD_DIM_K] > INT32_MAX / taps ? "more than 2^31 - 1 products for an element"
                                                                     : NULL;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, CONV_FEW);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, CONV_TILE);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, CONV_FEW);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, CONV_TILE);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_Q, 2 * CONV_POSITIONS);
}

SIMT_KERNELS(conv2d_backward) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
