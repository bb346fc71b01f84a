/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on CDNA devices: the host side. */
#include "backends/simt/conv/conv2d_host.h"

static const char *mfma_refuse(const trine_call *call) {
    const conv_params p = conv_forward_of(call);
    const char *const why = conv_forward_refuse(call);
    return why != NULL                                          ? why
           : trine_dtype_size(call->type[SIMT_FIRST_TYPE]) != 2 ? "not of 16 bits"
           : conv_few(&p)                                       ? "few channels of a group are written"
                                                                : NULL;
}

static trine_status mfma_launch(const trine_call *call) {
    static const conv_names names = { NULL, "mfma", NULL, "end" };
    conv_params p = conv_forward_of(call);
    return conv_launch(call, &p, &names);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    conv_forward_edges(call, edges);
    trine_kernel_edge(edges, CONV2D_DIM_CG, 32);
}

SIMT_KERNELS(conv2d) = { CONV_FORWARD_DEPTHWISE,
                         { .name = SIMT_NAME "_mfma",
                           .refuse = mfma_refuse,
                           .workspace = conv_forward_workspace,
                           .launch = mfma_launch,
                           .edges = edges },
                         CONV_FORWARD_TILES,
                         { 0 } };
