/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan on devices: the host side. */
#include "scan_host.h"
#include "spec/places/linear_scan.h"

static trine_status launch(const trine_call *call) {
    const trine_linear_scan_args *args = call->args;
    const int64_t *dim = call->dim;
    const linear_scan_params p = {
        .shape = scan_shape_of(call, LINEAR_SCAN_CU_SEQLENS, dim[LINEAR_SCAN_DIM_B], dim[LINEAR_SCAN_DIM_T],
                               dim[LINEAR_SCAN_DIM_N], dim[LINEAR_SCAN_DIM_NSEQ], args->reverse),
        .x = simt_rows_of(call, LINEAR_SCAN_X),
        .g = simt_rows_of(call, LINEAR_SCAN_G),
        .h0 = simt_rows_of(call, LINEAR_SCAN_H0),
        .y = simt_rows_of(call, LINEAR_SCAN_Y),
        .last = simt_rows_of(call, LINEAR_SCAN_LAST),
    };
    const simt_function function = { .type = { call->type[LINEAR_SCAN_TYPE_T] } };
    return simt_launch(call, &function, scan_blocks(&p.shape), SCAN_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, LINEAR_SCAN_DIM_N, SCAN_THREADS);
    trine_kernel_edge(edges, LINEAR_SCAN_DIM_T, SCAN_AHEAD);
    trine_kernel_edge(edges, LINEAR_SCAN_DIM_T, 2 * SCAN_AHEAD);
}

SIMT_KERNELS(linear_scan) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
