/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that rms_norm and layer_norm share, and those of their gradients. Tensors are given by their numbers, -1 where an op has none; `p` has what the
 * call's parameters say. */
#ifndef TRINE_SIMT_NORM_LAUNCH_H
#define TRINE_SIMT_NORM_LAUNCH_H

#include "backends/simt/core/host.h"
#include "norm.h"
#include "spec/alike.h"
#include "spec/places/layer_norm.h"
#include "spec/places/layer_norm_backward.h"
#include "spec/places/rms_norm.h"
#include "spec/places/rms_norm_backward.h"

/* What the tables of both norms and of their gradients say alike. */
enum { NORM_DIM_R = RMS_NORM_DIM_R, NORM_DIM_N = RMS_NORM_DIM_N, NORM_TYPE_T = RMS_NORM_TYPE_T, NORM_TYPE_R = RMS_NORM_TYPE_R, NORM_TYPE_W = RMS_NORM_TYPE_W };
#define NORM_ALIKE(OP) \
    TRINE_ALIKE(NORM_DIM_R, OP##_DIM_R); \
    TRINE_ALIKE(NORM_DIM_N, OP##_DIM_N); \
    TRINE_ALIKE(NORM_TYPE_T, OP##_TYPE_T); \
    TRINE_ALIKE(NORM_TYPE_R, OP##_TYPE_R); \
    TRINE_ALIKE(NORM_TYPE_W, OP##_TYPE_W)
NORM_ALIKE(RMS_NORM_BACKWARD);
NORM_ALIKE(LAYER_NORM);
NORM_ALIKE(LAYER_NORM_BACKWARD);
#undef NORM_ALIKE
/* Entries are named by these. */
TRINE_ALIKE(NORM_TYPE_T, SIMT_FIRST_TYPE);
TRINE_ALIKE(NORM_TYPE_R, SIMT_SECOND_TYPE);

typedef struct norm_tensors {
    int x, residual, weight, bias, y, residual_out, mean, rstd;
} norm_tensors;

/* The parameters that the arguments of both norms have. */
#define NORM_PARAMS(args) \
    (norm_params) { \
        .eps = (args)->eps, .weight_offset = (args)->weight_offset, .round = (args)->rounding == TRINE_ROUND_BEFORE_WEIGHT, \
        .dropout = simt_dropout_of((args)->dropout, (args)->seed, (args)->offset) \
    }

trine_status norm_launch(const trine_call *call, const norm_tensors *t, norm_params p);

typedef struct norm_backward_tensors {
    int dy, h, weight, mean, rstd, dresidual, dx, dh, dweight, dbias;
} norm_backward_tensors;

/* Likewise those of their gradients. */
#define NORM_BACKWARD_PARAMS(args) \
    (norm_backward_params) { .weight_offset = (args)->weight_offset, .dropout = simt_dropout_of((args)->dropout, (args)->seed, (args)->offset) }

/* Partial sums of dweight, then of dbias, where they are asked for. */
size_t norm_backward_workspace(const trine_call *call, const norm_backward_tensors *t, norm_backward_params p);

trine_status norm_backward_launch(const trine_call *call, const norm_backward_tensors *t, norm_backward_params p);

#endif
