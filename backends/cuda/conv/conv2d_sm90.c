/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on sm_90a: the host side. */
#include "conv2d_sm90_host.h"

#include "backends/simt/conv/conv2d_host.h"
#include "conv_sm90_host.h"

const char *conv2d_sm90_refuse(const trine_call *call) {
    const conv_params p = conv_forward_of(call);
    const conv_sm90_choice *choice = call->self;
    const char *why = conv_forward_refuse(call);
    if (why == NULL) why = conv_sm90_refuse(call, &p);
    return why == NULL && choice->tile == 0 ? conv_sm90_slower(call, &p) : why;
}

size_t conv2d_sm90_workspace(const trine_call *call) {
    conv_params p = conv_forward_of(call);
    if (call->empty) return 0;
    conv_sm90_set(call, call->self, &p);
    return conv_sums_bytes(&p, TRINE_F32);
}

trine_status conv2d_sm90_launch(const trine_call *call) {
    conv_params p = conv_forward_of(call);
    return conv_sm90_launch(call, call->self, &p, "conv2d_sm90", "end");
}

void conv2d_sm90_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    for (int i = 0; i < CONV_SM90_TILES; i++) trine_kernel_edge(edges, CONV2D_DIM_K, conv_sm90_tiles[i].columns);
    trine_kernel_edge(edges, CONV2D_DIM_CG, CONV_SM90_STEP);
    trine_kernel_edge(edges, CONV2D_DIM_Q, ROWS_SM90_ROWS / 2);
    trine_kernel_edge(edges, CONV2D_DIM_Q, ROWS_SM90_ROWS);
    trine_kernel_edge(edges, CONV2D_DIM_Q, (int64_t)ROWS_SM90_PAIR * ROWS_SM90_ROWS);
}
