/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_strided on the CPU. */
#include "strided.h"
#include "spec/places/unpack_strided.h"

static layout layout_here(const trine_call *call) {
    const trine_unpack_strided_args *args = call->args;
    return LAYOUT_OF(call, args, UNPACK_STRIDED_X, UNPACK_STRIDED_PACKED);
}

static const char *refuse(const trine_call *call) {
    const layout l = layout_here(call);
    return strided_refuse(&l);
}

static trine_status launch(const trine_call *call) {
    const layout l = layout_here(call);
    return strided_run(call, &l, false);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t size = (int64_t)trine_dtype_size(call->type[UNPACK_STRIDED_TYPE_T]);
    trine_kernel_edge(edges, UNPACK_STRIDED_DIM_M, STRIDED_PIECE / size + 1);
    cpu_team_edge(edges, UNPACK_STRIDED_DIM_I, call->dim[UNPACK_STRIDED_DIM_M] * size + STRIDED_ROW);
}

CPU_KERNELS(unpack_strided) = { { CPU_NAME, refuse, NULL, launch, .edges = edges }, { 0 } };
