/* SPDX-License-Identifier: Apache-2.0 */
/* linear_scan on devices: the host side. */
#include "scan_host.h"
#include "spec/places/linear_scan.h"

static linear_scan_params params_of(const trine_call *call) {
    const trine_linear_scan_args *args = call->args;
    const int64_t *dim = call->dim;
    linear_scan_params p = {
        .shape = scan_shape_of(call, LINEAR_SCAN_CU_SEQLENS, dim[LINEAR_SCAN_DIM_B], dim[LINEAR_SCAN_DIM_T],
                               dim[LINEAR_SCAN_DIM_N], dim[LINEAR_SCAN_DIM_NSEQ], args->reverse),
        .x = simt_rows_of(call, LINEAR_SCAN_X),
        .g = simt_rows_of(call, LINEAR_SCAN_G),
        .h0 = simt_rows_of(call, LINEAR_SCAN_H0),
        .y = simt_rows_of(call, LINEAR_SCAN_Y),
        .last = simt_rows_of(call, LINEAR_SCAN_LAST),
    };
    scan_cut(&p.shape);
    return p;
}

SCAN_KERNEL(linear_scan, LINEAR_SCAN);
