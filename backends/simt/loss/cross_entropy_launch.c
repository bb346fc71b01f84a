/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on devices: the host side that backends share. */
#include "cross_entropy_launch.h"

TRINE_ALIKE(CROSS_ENTROPY_TYPE_T, SIMT_FIRST_TYPE);

cross_entropy_params cross_entropy_params_of(const trine_call *call) {
    const trine_cross_entropy_args *args = call->args;
    return (cross_entropy_params){
        .loss = simt_rows_of(call, CROSS_ENTROPY_LOSS),
        .ahead = simt_ahead_of(call, CROSS_ENTROPY_LOGITS),
        CROSS_ENTROPY_PARAMS(call, args, CROSS_ENTROPY),
    };
}

trine_status cross_entropy_launch(const trine_call *call) {
    const bool gradient = simt_present(call, CROSS_ENTROPY_DLOGITS);
    const cross_entropy_params p = cross_entropy_params_of(call);
    if (loss_weighted(&p))
        return simt_launch(call, &(simt_function){ .step = "weighted" }, p.rows, SIMT_THREADS, &p, sizeof p);
    return simt_launch_rows(call,
                            !gradient         ? NULL
                            : loss_narrow(&p) ? "narrow_gradient"
                                              : "gradient",
                            p.rows, CROSS_ENTROPY_DIM_V, gradient ? SIMT_TWO_ROWS : SIMT_STREAM, &p, sizeof p);
}

void cross_entropy_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    simt_row_edges(edges, CROSS_ENTROPY_DIM_R, CROSS_ENTROPY_DIM_V, SIMT_STREAM);
    simt_row_edges(edges, CROSS_ENTROPY_DIM_R, CROSS_ENTROPY_DIM_V, SIMT_TWO_ROWS);
}
