/* SPDX-License-Identifier: Apache-2.0 */
/* dwt on devices: the host side. */
#include "spec/places/dwt.h"
#include "wavelet_host.h"

static trine_status launch(const trine_call *call) {
    const trine_dwt_args *args = call->args;
    const trine_tensor *y = &call->tensor[DWT_Y];
    const wavelet_params p = wavelet_params_of(&call->tensor[DWT_X], y, wavelet_filters_of(args->wavelet, 0),
                                               args->edge, y->shape[2], y->shape[3], 1);
    const simt_function function = { .type = { call->type[DWT_TYPE_T] } };
    return simt_launch(call, &function, p.tiles, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, DWT_DIM_Q, WAVELET_COLUMNS);
    trine_kernel_edge(edges, DWT_DIM_P, WAVELET_ROWS);
}

SIMT_KERNELS(dwt) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
