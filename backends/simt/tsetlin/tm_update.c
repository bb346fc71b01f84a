/* SPDX-License-Identifier: Apache-2.0 */
/* tm_update on devices: the host side. */
#include "tm_update.h"
#include "backends/simt/core/host.h"
#include "spec/places/tm_update.h"

static size_t workspace(const trine_call *call) {
    return (size_t)(call->dim[TM_UPDATE_DIM_C] * call->dim[TM_UPDATE_DIM_J]);
}

static bool whole(const trine_tensor *states) {
    const int64_t size = (int64_t)trine_dtype_size(states->dtype), four = 4 * size;
    return (uintptr_t)states->data % (uintptr_t)four == 0 && states->stride[0] % 4 == 0 && states->stride[1] % 4 == 0;
}

static trine_status launch(const trine_call *call) {
    const trine_tm_update_args *args = call->args;
    const trine_tensor *states = &call->tensor[TM_UPDATE_STATES], *include = trine_call_given(call, TM_UPDATE_INCLUDE);
    const int32_t most = states->dtype == TRINE_I8 ? 128 : 32768,
                  depth = args->depth > 0 && args->depth < most ? args->depth : most;
    const update_params p = { .literals = simt_rows_of(call, TM_UPDATE_LITERALS),
                              .labels = call->tensor[TM_UPDATE_LABELS].data,
                              .states = states->data,
                              .include = include ? include->data : NULL,
                              .holds = call->workspace,
                              .states_stride = { states->stride[0], states->stride[1] },
                              .include_stride = { include ? include->stride[0] : 0, include ? include->stride[1] : 0 },
                              .e = call->dim[TM_UPDATE_DIM_E],
                              .c = call->dim[TM_UPDATE_DIM_C],
                              .j = call->dim[TM_UPDATE_DIM_J],
                              .l = call->dim[TM_UPDATE_DIM_L],
                              .w = call->dim[TM_UPDATE_DIM_W],
                              .unlikely = (uint64_t)(0x1p32 / (double)args->specificity),
                              .random = simt_dropout_of(0, args->seed, args->offset),
                              .threshold = args->threshold,
                              .low = -depth,
                              .high = depth - 1,
                              .boost = args->boost,
                              .whole = whole(states) };
    const int threads = p.j > TM_FEW / TM_TEAM ? TM_MANY : TM_FEW;
    const simt_function function = { .type = { states->dtype }, .variant = threads };
    return simt_launch(call, &function, p.c, threads, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, TM_UPDATE_DIM_J, TM_FEW / TM_TEAM);
    trine_kernel_edge(edges, TM_UPDATE_DIM_J, TM_MANY / TM_TEAM);
    trine_kernel_edge(edges, TM_UPDATE_DIM_L, TM_TEAM);
    trine_kernel_edge(edges, TM_UPDATE_DIM_L, 4 * TM_TEAM);
}

SIMT_KERNELS(tm_update) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
