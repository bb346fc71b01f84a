/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy's launches that backends share, and what they pass to device code. */
#ifndef TRINE_SIMT_CROSS_ENTROPY_LAUNCH_H
#define TRINE_SIMT_CROSS_ENTROPY_LAUNCH_H

#include <math.h>

#include "cross_entropy.h"
#include "backends/simt/core/host.h"
#include "spec/alike.h"
#include "spec/places/cross_entropy.h"
#include "spec/places/cross_entropy_backward.h"

/* What both tables have alike. */
TRINE_ALIKE(CROSS_ENTROPY_DIM_R, CROSS_ENTROPY_BACKWARD_DIM_R);
TRINE_ALIKE(CROSS_ENTROPY_DIM_V, CROSS_ENTROPY_BACKWARD_DIM_V);

/* The sizes, and the parameters that the arguments of the op and of its gradient have. */
#define CROSS_ENTROPY_PARAMS(call, args) \
    .rows = (call)->dim[CROSS_ENTROPY_DIM_R], .v = (call)->dim[CROSS_ENTROPY_DIM_V], \
    .ignore = (args)->ignore_index_set ? (args)->ignore_index : -100, .scale = (args)->logit_scale, \
    .f = (args)->logit_scale > 0   ? 0.5f \
         : (args)->logit_scale < 0 ? -0.5f \
                                   : 0, \
    .base2 = (args)->logit_scale == 0 ? 1 : (float)(2 * fabs((args)->logit_scale) * 1.4426950408889634), \
    .unit = 2 * fabsf((args)->logit_scale), \
    .per_unit = (args)->logit_scale == 0 ? 0 : fminf(0.5f / fabsf((args)->logit_scale), 0x1.fffffep127f), \
    .smoothing = (args)->label_smoothing, .z_loss = (args)->z_loss, \
    .spread = (float)((args)->label_smoothing / (double)(call)->dim[CROSS_ENTROPY_DIM_V]), \
    .at_label = \
        (float)(1 - (args)->label_smoothing + (args)->label_smoothing / (double)(call)->dim[CROSS_ENTROPY_DIM_V])

cross_entropy_params cross_entropy_params_of(const trine_call *call);

/* Rows through registers. */
trine_status cross_entropy_launch(const trine_call *call);
void cross_entropy_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
