/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast on the CPU, in pieces that have room in a half. */
#include "backends/cpu/comm/copy.h"
#include "spec/places/broadcast.h"

static trine_status launch(const trine_call *call) {
    const trine_broadcast_args *args = call->args;
    const trine_tensor *x = &call->tensor[BROADCAST_X], *y = &call->tensor[BROADCAST_Y];
    const bool gives = trine_cpu_group_rank(call) == args->root;
    const int64_t n = call->dim[BROADCAST_DIM_N], room = copy_room(call, x->dtype, 1),
                  width = (int64_t)trine_dtype_size(x->dtype);
    for (int64_t at = 0; at == 0 || at < n; at += room) {
        char *half;
        trine_status status = trine_cpu_group_ready(call, &half);
        if (status != TRINE_OK) return status;
        const int64_t bytes = (n - at < room ? n - at : room) * width;
        const char *from = (const char *)x->data + at * width;
        if (gives) copy_row(call, half, from, bytes);
        status = trine_cpu_group_post(call, at == 0, 1);
        if (status != TRINE_OK) return status;
        copy_row(call, (char *)y->data + at * width, gives ? from : trine_cpu_group_half(call, args->root), bytes);
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, BROADCAST_DIM_N, copy_room(call, call->type[BROADCAST_TYPE_T], 1));
    cpu_team_edge(edges, BROADCAST_DIM_N, (int64_t)trine_dtype_size(call->type[BROADCAST_TYPE_T]));
}

CPU_KERNELS(broadcast) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
