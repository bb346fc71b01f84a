/* SPDX-License-Identifier: Apache-2.0 */
/* conv3d on the CPU. */
#include "conv.h"
#include "spec/places/conv3d.h"

static conv_call geometry(const trine_call *call) {
    const trine_conv3d_args *args = call->args;
    const int32_t stride[] = { args->stride_d, args->stride_h, args->stride_w },
                  pad[] = { args->pad_front, args->pad_top, args->pad_left },
                  dilation[] = { args->dilation_d, args->dilation_h, args->dilation_w };
    return conv_call_of(call, &call->tensor[CONV3D_X], &call->tensor[CONV3D_WEIGHT], &call->tensor[CONV3D_Y], stride,
                        pad, dilation);
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const conv_call c = geometry(call);
    return conv_forward_workspace(&c, trine_call_given(call, CONV3D_BIAS));
}

static trine_status launch(const trine_call *call) {
    const conv_call c = geometry(call);
    return conv_forward_launch(&c, trine_call_given(call, CONV3D_BIAS));
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const unit_kind kind = unit_of(call->type[CONV3D_TYPE_T]);
    trine_kernel_edge(edges, CONV3D_DIM_K, tile_columns(kind));
    trine_kernel_edge(edges, CONV3D_DIM_K, TASK_COLUMNS);
    trine_kernel_edge(edges, CONV3D_DIM_CG, unit_depth(kind));
    trine_kernel_edge(edges, CONV3D_DIM_CG, part_units_of(kind) * unit_depth(kind));
    trine_kernel_edge(edges, CONV3D_DIM_CG, RUN_LEAST);
    trine_kernel_edge(edges, CONV3D_DIM_CG, PLANE_BESIDE);
    trine_kernel_edge(edges, CONV3D_DIM_Q, DEPTHWISE_BESIDE);
    trine_kernel_edge(edges, CONV3D_DIM_Q, tile_rows(kind));
    trine_kernel_edge(edges, CONV3D_DIM_Q, TASK_ROWS);
    trine_kernel_edge(edges, CONV3D_DIM_Q, PLANE_WIDTH);
}

CPU_KERNELS(conv3d) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
