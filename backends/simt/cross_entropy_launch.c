/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on devices: the host side that backends share. */
#include "cross_entropy_launch.h"

cross_entropy_params cross_entropy_params_of(const trine_call *call) {
    const trine_cross_entropy_args *args = call->args;
    const double spread = args->label_smoothing / (double)call->dim[1];
    return (cross_entropy_params){
        .logits = simt_rows_of(call, CROSS_ENTROPY_LOGITS),
        .labels = simt_rows_of(call, CROSS_ENTROPY_LABELS),
        .loss = simt_rows_of(call, CROSS_ENTROPY_LOSS),
        .lse = simt_rows_of(call, CROSS_ENTROPY_LSE),
        .rows = call->dim[0],
        .v = call->dim[1],
        .ignore = args->ignore_index_set ? args->ignore_index : -100,
        .scale = args->logit_scale,
        .base2 = (float)(args->logit_scale * 1.4426950408889634),
        .smoothing = args->label_smoothing,
        .z_loss = args->z_loss,
        .long_labels = call->tensor[CROSS_ENTROPY_LABELS].dtype == TRINE_I64,
        .dloss = simt_rows_of(call, CROSS_ENTROPY_DLOSS),
        .dlogits = simt_rows_of(call, CROSS_ENTROPY_DLOGITS),
        .dloss_step = simt_present(call, CROSS_ENTROPY_DLOSS) ? call->tensor[CROSS_ENTROPY_DLOSS].stride[0] : 0,
        .spread = (float)spread,
        .at_label = (float)(1 - args->label_smoothing + spread),
        .twice_z_loss = 2 * args->z_loss,
    };
}

trine_status cross_entropy_launch(const trine_call *call) {
    const bool gradient = simt_present(call, CROSS_ENTROPY_DLOGITS);
    const cross_entropy_params p = cross_entropy_params_of(call);
    return simt_launch_rows(call, gradient ? "gradient" : NULL, p.rows, 1, gradient ? SIMT_TWO_ROWS : SIMT_STREAM, &p, sizeof p);
}
