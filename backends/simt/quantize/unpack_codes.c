/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_codes on devices: the host side. */
#include "packing_host.h"
#include "spec/places/unpack_codes.h"

static trine_status launch(const trine_call *call) {
    const trine_unpack_codes_args *args = call->args;
    return packing_launch(call, UNPACK_CODES_CODES, UNPACK_CODES_PACKED, UNPACK_CODES_CODES, args->order);
}

/* A block of threads. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, UNPACK_CODES_DIM_Q, SIMT_THREADS);
}

SIMT_KERNELS(unpack_codes) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
