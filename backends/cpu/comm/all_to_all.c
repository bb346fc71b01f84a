/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all on the CPU, in pieces of rows that have room in a half side by side. */
#include "backends/cpu/comm/copy.h"
#include "spec/places/all_to_all.h"

static trine_status launch(const trine_call *call) {
    const trine_tensor *x = &call->tensor[ALL_TO_ALL_X], *y = &call->tensor[ALL_TO_ALL_Y];
    const int ranks = (int)call->dim[ALL_TO_ALL_DIM_RANKS], rank = trine_cpu_group_rank(call);
    const int64_t n = call->dim[ALL_TO_ALL_DIM_N], room = copy_room(call, x->dtype, ranks),
                  width = (int64_t)trine_dtype_size(x->dtype);
    for (int64_t at = 0; at == 0 || at < n; at += room) {
        char *half;
        trine_status status = trine_cpu_group_ready(call, &half);
        if (status != TRINE_OK) return status;
        copies own = { .rows = ranks, .bytes = (n - at < room ? n - at : room) * width }, all = own;
        for (int r = 0; r < ranks; r++) own.from[r] = row_at(x, r, at), own.to[r] = half + r * room * width;
        copy_rows(call, &own);
        status = trine_cpu_group_post(call, at == 0, 1);
        if (status != TRINE_OK) return status;
        for (int r = 0; r < ranks; r++)
            all.from[r] = trine_cpu_group_half(call, r) + rank * room * width, all.to[r] = row_at(y, r, at);
        copy_rows(call, &all);
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ALL_TO_ALL_DIM_N,
                      copy_room(call, call->type[ALL_TO_ALL_TYPE_T], call->dim[ALL_TO_ALL_DIM_RANKS]));
}

CPU_KERNELS(all_to_all) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
