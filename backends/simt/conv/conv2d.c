/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on devices: the host side. */
#include "conv_host.h"
#include "spec/alike.h"
#include "spec/places/conv2d.h"

TRINE_ALIKE(CONV2D_TYPE_T, SIMT_FIRST_TYPE);

static const char *refuse(const trine_call *call) { return conv_refuse_patches(&call->tensor[CONV2D_WEIGHT]); }

static trine_status launch(const trine_call *call) {
    const trine_conv2d_args *args = call->args;
    const int32_t stride[] = { args->stride_h, args->stride_w }, pad[] = { args->pad_top, args->pad_left },
                  dilation[] = { args->dilation_h, args->dilation_w };
    const conv_call c = {
        &call->tensor[CONV2D_X], &call->tensor[CONV2D_WEIGHT], &call->tensor[CONV2D_Y], stride, pad, dilation
    };
    conv_params p = conv_params_of(&c, c.y, trine_call_given(call, CONV2D_BIAS));
    return conv_launch(call, &p, "few", NULL);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CONV2D_DIM_K, CONV_FEW);
    trine_kernel_edge(edges, CONV2D_DIM_K, CONV_TILE);
    trine_kernel_edge(edges, CONV2D_DIM_CG, CONV_DEPTH);
    trine_kernel_edge(edges, CONV2D_DIM_Q, CONV_TILE);
}

SIMT_KERNELS(conv2d) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
