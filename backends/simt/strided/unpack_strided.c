/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_strided on devices: the host side. */
#include "strided_host.h"
#include "spec/places/unpack_strided.h"

static layout layout_here(const trine_call *call) {
    const trine_unpack_strided_args *args = call->args;
    return LAYOUT_OF(call, args, UNPACK_STRIDED_X, UNPACK_STRIDED_PACKED);
}

static const char *refuse(const trine_call *call) {
    const layout l = layout_here(call);
    return l.far ? "places beyond 2^61 bytes" : NULL;
}

static trine_status launch(const trine_call *call) {
    const layout l = layout_here(call);
    return strided_launch(call, &l, trine_dtype_size(call->type[UNPACK_STRIDED_TYPE_T]), !l.apart);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, UNPACK_STRIDED_DIM_M, SIMT_THREADS);
}

SIMT_KERNELS(unpack_strided) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
