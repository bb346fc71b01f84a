/* SPDX-License-Identifier: Apache-2.0 */
/* pack_strided on the CPU. */
#include "strided.h"
#include "spec/places/pack_strided.h"

static layout layout_here(const trine_call *call) {
    const trine_pack_strided_args *args = call->args;
    return LAYOUT_OF(call, args, PACK_STRIDED_X, PACK_STRIDED_PACKED);
}

static const char *refuse(const trine_call *call) {
    const layout l = layout_here(call);
    return strided_refuse(&l);
}

static trine_status launch(const trine_call *call) {
    const layout l = layout_here(call);
    return strided_run(call, &l, true);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t size = (int64_t)trine_dtype_size(call->type[PACK_STRIDED_TYPE_T]);
    trine_kernel_edge(edges, PACK_STRIDED_DIM_M, STRIDED_PIECE / size + 1);
    cpu_team_edge(edges, PACK_STRIDED_DIM_I, call->dim[PACK_STRIDED_DIM_M] * size + STRIDED_ROW);
}

CPU_KERNELS(pack_strided) = { { CPU_NAME, refuse, NULL, launch, .edges = edges }, { 0 } };
