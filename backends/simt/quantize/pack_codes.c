/* SPDX-License-Identifier: Apache-2.0 */
/* pack_codes on devices: the host side. */
#include "packing_host.h"
#include "spec/places/pack_codes.h"

static trine_status launch(const trine_call *call) {
    const trine_pack_codes_args *args = call->args;
    return packing_launch(call, PACK_CODES_CODES, PACK_CODES_PACKED, PACK_CODES_PACKED, args->order);
}

/* A block of threads. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, PACK_CODES_DIM_Q, SIMT_THREADS);
}

SIMT_KERNELS(pack_codes) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
