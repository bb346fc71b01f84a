/* SPDX-License-Identifier: Apache-2.0 */
/* conv3d on devices: the host side. */
#include "conv_host.h"
#include "spec/alike.h"
#include "spec/places/conv3d.h"

TRINE_ALIKE(CONV3D_TYPE_T, SIMT_FIRST_TYPE);

static const char *refuse(const trine_call *call) { return conv_refuse_patches(&call->tensor[CONV3D_WEIGHT]); }

static trine_status launch(const trine_call *call) {
    const trine_conv3d_args *args = call->args;
    const int32_t stride[] = { args->stride_d, args->stride_h, args->stride_w },
                  pad[] = { args->pad_front, args->pad_top, args->pad_left },
                  dilation[] = { args->dilation_d, args->dilation_h, args->dilation_w };
    const conv_call c = {
        &call->tensor[CONV3D_X], &call->tensor[CONV3D_WEIGHT], &call->tensor[CONV3D_Y], stride, pad, dilation
    };
    conv_params p = conv_params_of(&c, c.y, trine_call_given(call, CONV3D_BIAS));
    return conv_launch(call, &p, "few", NULL);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, CONV3D_DIM_K, CONV_FEW);
    trine_kernel_edge(edges, CONV3D_DIM_K, CONV_TILE);
    trine_kernel_edge(edges, CONV3D_DIM_CG, CONV_DEPTH);
    trine_kernel_edge(edges, CONV3D_DIM_Q, CONV_TILE);
}

SIMT_KERNELS(conv3d) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
