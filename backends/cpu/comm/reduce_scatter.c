/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter on the CPU, in pieces of rows that have room in a half side by side: every rank adds up what all have
 * for it. */
#include "backends/cpu/comm/sums.h"
#include "spec/places/reduce_scatter.h"

static trine_status launch(const trine_call *call) {
    const trine_reduce_scatter_args *args = call->args;
    const trine_tensor *x = &call->tensor[REDUCE_SCATTER_X], *y = &call->tensor[REDUCE_SCATTER_Y];
    const int ranks = (int)call->dim[REDUCE_SCATTER_DIM_RANKS], rank = trine_cpu_group_rank(call);
    const int64_t n = call->dim[REDUCE_SCATTER_DIM_N], room = copy_room(call, x->dtype, ranks),
                  width = (int64_t)trine_dtype_size(x->dtype);
    for (int64_t at = 0; at == 0 || at < n; at += room) {
        char *half;
        trine_status status = trine_cpu_group_ready(call, &half);
        if (status != TRINE_OK) return status;
        const int64_t count = n - at < room ? n - at : room;
        copies own = { .rows = ranks, .bytes = count * width };
        for (int r = 0; r < ranks && count > 0; r++)
            own.from[r] = row_at(x, r, at), own.to[r] = half + r * room * width;
        copy_rows(call, &own);
        status = trine_cpu_group_post(call, at == 0, 1);
        if (status != TRINE_OK) return status;
        sums s = { .T = x->dtype, .kind = args->kind, .ranks = ranks, .n = count, .to = (char *)y->data + at * width };
        for (int r = 0; r < ranks; r++) s.from[r] = trine_cpu_group_half(call, r) + rank * room * width;
        sum_all(call, &s);
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, REDUCE_SCATTER_DIM_N, VL);
    trine_kernel_edge(edges, REDUCE_SCATTER_DIM_N, SUM_PIECE);
    trine_kernel_edge(edges, REDUCE_SCATTER_DIM_N,
                      copy_room(call, call->type[REDUCE_SCATTER_TYPE_T], call->dim[REDUCE_SCATTER_DIM_RANKS]));
}

CPU_KERNELS(reduce_scatter) = { { CPU_NAME, NULL, NULL, launch, .edges = edges, .same = true }, { 0 } };
