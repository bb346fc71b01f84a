/* SPDX-License-Identifier: Apache-2.0 */
/* idwt on devices: the host side. */
#include "spec/places/idwt.h"
#include "wavelet_host.h"

static trine_status launch(const trine_call *call) {
    const trine_idwt_args *args = call->args;
    const trine_tensor *x = &call->tensor[IDWT_X];
    const wavelet_params p = wavelet_params_of(x, &call->tensor[IDWT_Y], wavelet_filters_of(args->wavelet, 1),
                                               args->edge, x->shape[1], x->shape[2], 2);
    const simt_function function = { .type = { call->type[IDWT_TYPE_T] } };
    return simt_launch(call, &function, p.tiles, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, IDWT_DIM_W, 2 * WAVELET_COLUMNS);
    trine_kernel_edge(edges, IDWT_DIM_H, WAVELET_ROWS);
}

SIMT_KERNELS(idwt) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
