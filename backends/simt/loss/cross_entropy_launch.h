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

/* The sizes, and the parameters that the arguments of the op, of its gradient, and of that over ranks have; `classes`
 * of a row. */
#define LOGITS_PARAMS(call, args, op, classes) \
    .rows = (call)->dim[op##_DIM_R], .v = (classes), .ignore = (args)->ignore_index_set ? (args)->ignore_index : -100, \
    .scale = (args)->logit_scale, \
    .f = (args)->logit_scale > 0   ? 0.5f \
         : (args)->logit_scale < 0 ? -0.5f \
                                   : 0, \
    .base2 = (args)->logit_scale == 0 ? 1 : (float)(2 * fabs((args)->logit_scale) * 1.4426950408889634), \
    .unit = 2 * fabsf((args)->logit_scale), \
    .per_unit = (args)->logit_scale == 0 ? 0 : fminf(0.5f / fabsf((args)->logit_scale), 0x1.fffffep127f), \
    .smoothing = (args)->label_smoothing, .z_loss = (args)->z_loss, \
    .spread = (float)((args)->label_smoothing / (double)(classes)), \
    .at_label = (float)(1 - (args)->label_smoothing + (args)->label_smoothing / (double)(classes)), \
    .logits = simt_rows_of(call, op##_LOGITS), .labels = simt_rows_of(call, op##_LABELS), \
    .lse = simt_rows_of(call, op##_LSE), .long_labels = (call)->tensor[op##_LABELS].dtype == TRINE_I64, \
    .from = loss_type_of((call)->type[op##_TYPE_T]), .to = loss_type_of((call)->type[op##_TYPE_G]), \
    .dloss = simt_rows_of(call, op##_DLOSS), .dlogits = simt_rows_of(call, op##_DLOGITS), \
    .dloss_step = simt_present(call, op##_DLOSS) ? (call)->tensor[op##_DLOSS].stride[0] : 0
#define CROSS_ENTROPY_PARAMS(call, args, op) \
    LOGITS_PARAMS(call, args, op, (call)->dim[op##_DIM_V]), .weights = simt_rows_of(call, op##_CLASS_WEIGHT).data

static inline loss_type loss_type_of(trine_dtype dtype) {
    return dtype == TRINE_F32 ? LOSS_F32 : dtype == TRINE_BF16 ? LOSS_BF16 : LOSS_F16;
}

/* Do targets differ from class to class, so that rows need the weights of all? Then a block of SIMT_THREADS has
 * each. */
static inline bool loss_weighted(const cross_entropy_params *p) { return p->weights != NULL && p->smoothing > 0; }
/* Are gradients narrower than the logits? */
static inline bool loss_narrow(const cross_entropy_params *p) { return p->to != p->from; }

cross_entropy_params cross_entropy_params_of(const trine_call *call);

/* Rows through registers. */
trine_status cross_entropy_launch(const trine_call *call);
void cross_entropy_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
