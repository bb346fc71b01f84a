/* SPDX-License-Identifier: Apache-2.0 */
/* dwt on devices: the host side. */
#include "spec/places/dwt.h"
#include "wavelet_host.h"

static trine_status launch(const trine_call *call) {
    const trine_dwt_args *args = call->args;
    return wavelet_launch(call, &call->tensor[DWT_X], &call->tensor[DWT_Y], args->wavelet, args->edge, false);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, DWT_DIM_Q, WAVELET_COLUMNS);
    trine_kernel_edge(edges, DWT_DIM_P, WAVELET_ROWS);
}

SIMT_KERNELS(dwt) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
