/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_v on devices: the host side. */
#include "backends/simt/comm/all_to_all_v.h"
#include "exchanges.h"
#include "spec/places/all_to_all_v.h"

static size_t workspace(const trine_call *call) {
    const size_t ranks = (size_t)call->dim[ALL_TO_ALL_V_DIM_RANKS];
    return ranks * ranks * trine_dtype_size(call->type[ALL_TO_ALL_V_TYPE_I]);
}

static trine_status run(const trine_call *call) {
    const trine_tensor *counts = &call->tensor[ALL_TO_ALL_V_COUNTS],
                       *received = trine_call_given(call, ALL_TO_ALL_V_RECEIVED);
    const int64_t ranks = call->dim[ALL_TO_ALL_V_DIM_RANKS], m = call->dim[ALL_TO_ALL_V_DIM_M],
                  n = call->dim[ALL_TO_ALL_V_DIM_N],
                  elements = EXCHANGE_PACKET / (int64_t)trine_dtype_size(call->type[ALL_TO_ALL_V_TYPE_T]);
    const trine_tensor all = exchange_rows(call->workspace, counts->dtype, ranks, ranks);
    const trine_status status = exchange_copies(call, counts, &all, ranks, 0);
    if (status != TRINE_OK) return status;
    vary_params p = { .exchange =
                          exchange_of(&call->tensor[ALL_TO_ALL_V_X], &call->tensor[ALL_TO_ALL_V_Y], n, EXCHANGE_PACKET),
                      .counts = call->workspace,
                      .received = received ? received->data : NULL,
                      .m = m,
                      .capacity = call->dim[ALL_TO_ALL_V_DIM_CAPACITY],
                      .wide = counts->dtype == TRINE_I64 };
    const simt_function function = { .step = "rows",
                                     .variant = (int)trine_dtype_size(call->type[ALL_TO_ALL_V_TYPE_T]) };
    return simt_exchange_more(call, &function, &p, sizeof p, m * simt_blocks(n, elements), 1);
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t elements = EXCHANGE_PACKET / (int64_t)trine_dtype_size(call->type[ALL_TO_ALL_V_TYPE_T]),
                  row = simt_blocks(call->dim[ALL_TO_ALL_V_DIM_N], elements);
    trine_kernel_edge(edges, ALL_TO_ALL_V_DIM_N, elements);
    if (row > 0) trine_kernel_edge(edges, ALL_TO_ALL_V_DIM_M, simt_group_room(call) / row);
}

SIMT_KERNELS(all_to_all_v) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
