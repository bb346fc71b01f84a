/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward on CUDA devices: the host side. */
#include "backends/simt/conv/conv2d_backward_host.h"
#include "conv2d_backward_sm90_host.h"
#include "conv_mma_host.h"
#include "conv_sm90_host.h"

/* Its ways, and what is chosen. */
typedef struct mma_way {
    backward_way way;
    conv_mma_choice choice;
} mma_way;

static const conv_mma_choice *choice_of(const trine_call *call) { return &((const mma_way *)call->self)->choice; }

/* Lanes of dx are channels of a group of x, those of dweight of dy: few of either go without tensor cores. */
static trine_status mma_dx(const trine_call *call, conv_params *p) {
    return conv_few(p) ? backward_dx(call, p) : conv_mma_launch(call, choice_of(call), p, "dx_end");
}
static void mma_set_dx(const trine_call *call, conv_params *p) {
    if (conv_few(p))
        conv_set_tiles(p);
    else
        conv_mma_set(call, choice_of(call), p);
}

static conv_mma_plan plan_of(const trine_call *call, const conv_gradient_params *p) {
    const conv_mma_sizes sizes = { p->groups, p->rows, p->elements, p->positions, CONV_MMA_GRADIENT_TILES, 0 };
    return conv_mma_plan_of(call, choice_of(call), &sizes);
}
static void mma_set_weights(const trine_call *call, conv_gradient_params *p) {
    if (backward_few(p)) {
        backward_set_weights(call, p);
        return;
    }
    const conv_mma_plan plan = plan_of(call, p);
    p->down = simt_blocks(p->rows, plan.tile->rows), p->right = simt_blocks(p->elements, plan.tile->columns);
    p->slices = plan.slices;
    p->slice = simt_blocks(simt_blocks(p->positions, p->slices), CONV_MMA_STEP) * CONV_MMA_STEP;
}
static trine_status mma_weights(const trine_call *call, conv_gradient_params *p) {
    if (backward_few(p)) return backward_weights(call, p);
    const trine_dtype type = call->type[SIMT_FIRST_TYPE];
    const conv_mma_plan plan = plan_of(call, p);
    const simt_function sums = { .step = plan.tile->weights,
                                 .type = { type },
                                 .shared = CONV_MMA_BYTES(plan.tile->rows, plan.tile->columns) };
    return backward_launch_sums(call, p, &sums, CONV_MMA_THREADS, p->slices * p->groups * p->down * p->right, type);
}

static const char *mma_refuse(const trine_call *call) {
    const conv_call c = backward_call_of(call);
    const trine_tensor *dx = trine_call_given(call, CONV2D_BACKWARD_DX);
    const conv_params forward = conv_params_of(&c, c.y, NULL),
                      back = dx != NULL ? conv_params_of(&c, dx, NULL) : forward;
    const char *const why = backward_refuse(call);
    return why != NULL                                                    ? why
           : trine_dtype_size(c.y->dtype) != 2                            ? "not of 16 bits"
           : conv_few(&forward) && conv_few(&back)                        ? "groups of few channels"
           : !conv_narrow(forward.axis) || !conv_narrow(back.axis)        ? "sizes beyond 2^28"
           : conv_mma_plan_for(call, choice_of(call), &back).tile == NULL ? "a block cannot have as much shared memory"
                                                                          : NULL;
}

/* ------------------------------------------------------------------------------ the gradient by x by warpgroups */

typedef struct sm90_way {
    mma_way mma; /* of the weights */
    int tile, slices;
} sm90_way;

static const sm90_way *sm90_of(const trine_call *call) { return call->self; }
static void sm90_set_dx(const trine_call *call, conv_params *p) {
    conv2d_backward_sm90_set(call, sm90_of(call)->tile, sm90_of(call)->slices, p);
}
static trine_status sm90_dx(const trine_call *call, conv_params *p) {
    return conv2d_backward_sm90_dx(call, sm90_of(call)->tile, sm90_of(call)->slices, p);
}
static const char *sm90_refuse(const trine_call *call) {
    const conv_call c = backward_call_of(call);
    const trine_tensor *dx = trine_call_given(call, CONV2D_BACKWARD_DX);
    const char *const why = mma_refuse(call);
    if (why != NULL || dx == NULL) return why != NULL ? why : "there is no gradient by x";
    const conv_params p = conv_params_of(&c, dx, NULL);
    return conv2d_backward_sm90_refuse(call, sm90_of(call)->tile, sm90_of(call)->slices, &p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, CONV_FEW);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, 64);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_K, 128);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, CONV_FEW);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_CG, 64);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_Q, 64);
    trine_kernel_edge(edges, CONV2D_BACKWARD_DIM_Q, 128);
}

#define MMA(text, tile, slices) \
    BACKWARD_KERNEL("_mma" text, mma_refuse, \
                    ((const mma_way){ { mma_set_dx, mma_dx, mma_set_weights, mma_weights }, { tile, slices } }), \
                    edges)

#define SM90(text, tile, slices) \
    BACKWARD_KERNEL( \
        "_sm90" text, sm90_refuse, \
        ((const sm90_way){ { { sm90_set_dx, sm90_dx, mma_set_weights, mma_weights }, { 0, 0 } }, tile, slices }), \
        edges)

/* By prediction, and each tile, with and without slices, for TRINE_KERNEL. */
SIMT_KERNELS(conv2d_backward) = { BACKWARD_DEPTHWISE,
                                  SM90("", 0, 0),
                                  MMA("", 0, 0),
                                  BACKWARD_TILES,
                                  MMA("_128x128", 1, 1),
                                  MMA("_64x64", 2, 1),
                                  MMA("_64x64_sliced", 2, 3),
                                  MMA("_128x128_sliced", 1, 2),
                                  CONV_SM90_EACH(SM90),
                                  { 0 } };
