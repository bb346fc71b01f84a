/* SPDX-License-Identifier: Apache-2.0 */
/* idwt on devices: the host side. */
#include "spec/places/idwt.h"
#include "wavelet_host.h"

static trine_status launch(const trine_call *call) {
    const trine_idwt_args *args = call->args;
    return wavelet_launch(call, &call->tensor[IDWT_X], &call->tensor[IDWT_Y], args->wavelet, args->edge, true);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, IDWT_DIM_W, 2 * WAVELET_COLUMNS);
    trine_kernel_edge(edges, IDWT_DIM_H, WAVELET_ROWS);
}

SIMT_KERNELS(idwt) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
