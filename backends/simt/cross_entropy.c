/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on devices: the host side. */
#include "cross_entropy.h"
#include "host.h"

enum { LOGITS, LABELS, LOSS, LSE }; /* as in the specification */

static trine_status launch(const trine_call *call) {
    const trine_cross_entropy_args *args = call->args;
    const cross_entropy_params p = {
        .logits = simt_rows_of(call, LOGITS),
        .labels = simt_rows_of(call, LABELS),
        .loss = simt_rows_of(call, LOSS),
        .lse = simt_rows_of(call, LSE),
        .rows = call->dim[0],
        .v = call->dim[1],
        .ignore = args->ignore_index_set ? args->ignore_index : -100,
        .scale = args->logit_scale,
        .base2 = (float)(args->logit_scale * 1.4426950408889634),
        .smoothing = args->label_smoothing,
        .z_loss = args->z_loss,
        .long_labels = call->tensor[LABELS].dtype == TRINE_I64,
    };
    return simt_launch_rows(call, p.rows, 1, SIMT_STREAM, &p, sizeof p);
}

SIMT_KERNELS(cross_entropy) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
