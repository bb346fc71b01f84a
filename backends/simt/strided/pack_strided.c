/* SPDX-License-Identifier: Apache-2.0 */
/* pack_strided on devices: the host side. */
#include "strided_host.h"
#include "spec/places/pack_strided.h"

static layout layout_here(const trine_call *call) {
    const trine_pack_strided_args *args = call->args;
    return LAYOUT_OF(call, args, PACK_STRIDED_X, PACK_STRIDED_PACKED);
}

static const char *refuse(const trine_call *call) {
    const layout l = layout_here(call);
    return l.far ? "places beyond 2^61 bytes" : NULL;
}

static trine_status launch(const trine_call *call) {
    const layout l = layout_here(call);
    return strided_launch(call, &l, trine_dtype_size(call->type[PACK_STRIDED_TYPE_T]), false);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, PACK_STRIDED_DIM_M, SIMT_THREADS);
}

SIMT_KERNELS(pack_strided) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
