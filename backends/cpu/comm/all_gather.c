/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather on the CPU, in pieces that have room in a half. */
#include "backends/cpu/comm/copy.h"
#include "spec/places/all_gather.h"

static trine_status launch(const trine_call *call) {
    const trine_tensor *x = &call->tensor[ALL_GATHER_X], *y = &call->tensor[ALL_GATHER_Y];
    const int ranks = (int)call->dim[ALL_GATHER_DIM_RANKS];
    const int64_t n = call->dim[ALL_GATHER_DIM_N], room = copy_room(call, x->dtype, 1),
                  width = (int64_t)trine_dtype_size(x->dtype);
    for (int64_t at = 0; at == 0 || at < n; at += room) {
        char *half;
        trine_status status = trine_cpu_group_ready(call, &half);
        if (status != TRINE_OK) return status;
        copies all = { .rows = ranks, .bytes = (n - at < room ? n - at : room) * width };
        copy_row(call, half, (const char *)x->data + at * width, all.bytes);
        status = trine_cpu_group_post(call, at == 0, 1);
        if (status != TRINE_OK) return status;
        for (int r = 0; r < ranks; r++) all.from[r] = trine_cpu_group_half(call, r), all.to[r] = row_at(y, r, at);
        copy_rows(call, &all);
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ALL_GATHER_DIM_N, copy_room(call, call->type[ALL_GATHER_TYPE_T], 1));
    cpu_team_edge(edges, ALL_GATHER_DIM_N, (int64_t)trine_dtype_size(call->type[ALL_GATHER_TYPE_T]));
}

CPU_KERNELS(all_gather) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
