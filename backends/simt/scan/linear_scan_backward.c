/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan_backward on devices: the host side. */
#include "scan_host.h"
#include "spec/places/linear_scan_backward.h"

static linear_scan_backward_params params_of(const trine_call *call) {
    const trine_linear_scan_backward_args *args = call->args;
    const int64_t *dim = call->dim;
    linear_scan_backward_params p = {
        .shape = scan_shape_of(call, LINEAR_SCAN_BACKWARD_CU_SEQLENS, dim[LINEAR_SCAN_BACKWARD_DIM_B],
                               dim[LINEAR_SCAN_BACKWARD_DIM_T], dim[LINEAR_SCAN_BACKWARD_DIM_N],
                               dim[LINEAR_SCAN_BACKWARD_DIM_NSEQ], args->reverse),
        .dy = simt_rows_of(call, LINEAR_SCAN_BACKWARD_DY),
        .g = simt_rows_of(call, LINEAR_SCAN_BACKWARD_G),
        .y = simt_rows_of(call, LINEAR_SCAN_BACKWARD_Y),
        .h0 = simt_rows_of(call, LINEAR_SCAN_BACKWARD_H0),
        .dlast = simt_rows_of(call, LINEAR_SCAN_BACKWARD_DLAST),
        .dx = simt_rows_of(call, LINEAR_SCAN_BACKWARD_DX),
        .dg = simt_rows_of(call, LINEAR_SCAN_BACKWARD_DG),
        .dh0 = simt_rows_of(call, LINEAR_SCAN_BACKWARD_DH0),
    };
    scan_cut(&p.shape);
    return p;
}

SCAN_KERNEL(linear_scan_backward, LINEAR_SCAN_BACKWARD);
