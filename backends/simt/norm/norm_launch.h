/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that rms_norm and layer_norm share, and those of their gradients, on all devices.
 * They are told which by call->self. */
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
enum {
    NORM_DIM_R = RMS_NORM_DIM_R,
    NORM_DIM_N = RMS_NORM_DIM_N,
    NORM_TYPE_T = RMS_NORM_TYPE_T,
    NORM_TYPE_R = RMS_NORM_TYPE_R,
    NORM_TYPE_W = RMS_NORM_TYPE_W
};
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

/* A norm: where its tensors are, -1 those that it has not, and what its parameters say. The self of its kernels. */
typedef struct norm_op {
    int x, residual, philox, weight, bias, y, residual_out, mean, rstd;
    norm_params (*params)(const trine_call *call);
} norm_op;
extern const norm_op norm_rms, norm_layer;

/* What the call passes to device code, but for what a way of its own needs. */
norm_params norm_params_of(const trine_call *call);

/* What rows are read from: x, or if only the device has dropout's key y, to which norm_mask() has x without what is
 * dropped. That comes before each launch of rows. */
int norm_source(const trine_call *call);
trine_status norm_mask(const trine_call *call);
void norm_edges_mask(const trine_call *call, trine_kernel_edges *edges);

/* Rows in registers, by groups of row.h: of any length and alignment. */
trine_status norm_launch_rows(const trine_call *call);
void norm_edges_rows(const trine_call *call, trine_kernel_edges *edges);

/* With the same bits on every device. */
const char *norm_refuse_same(const trine_call *call);
trine_status norm_launch_same(const trine_call *call);
void norm_edges_same(const trine_call *call, trine_kernel_edges *edges);

#define NORM_SAME_KERNEL(op) \
    { .name = SIMT_NAME "_same", \
      .refuse = norm_refuse_same, \
      .launch = norm_launch_same, \
      .edges = norm_edges_same, \
      .self = &(op), \
      .same = true }

/* The gradient of one, likewise. */
typedef struct norm_backward_op {
    int dy, h, weight, mean, rstd, dresidual, philox, dx, dh, dweight, dbias;
    norm_backward_params (*params)(const trine_call *call);
} norm_backward_op;
extern const norm_backward_op norm_backward_rms, norm_backward_layer;

norm_backward_params norm_backward_params_of(const trine_call *call);

/* Workspace for the partial sums of dweight and dbias over so many blocks, where they are asked for.
 * And where they are, for p->blocks. */
size_t norm_backward_bytes(const trine_call *call, int64_t blocks);
void norm_backward_partials(const trine_call *call, norm_backward_params *p);

/* What comes behind the rows: the mask of dx, if only the device has dropout's key, and the sums over p->blocks.
 * `ring`: rows went through shared memory. */
trine_status norm_backward_finish(const trine_call *call, const norm_backward_params *p, bool ring);

/* Is tensor `t` of an op given? */
static inline bool norm_given(const trine_call *call, int t) { return t >= 0 && simt_present(call, t); }

/* Rows that fit a group of NORM_FUSED_MOST threads, in turns. */
const char *norm_backward_refuse_rows(const trine_call *call);
size_t norm_backward_workspace_rows(const trine_call *call);
trine_status norm_backward_launch_rows(const trine_call *call);
void norm_backward_edges_rows(const trine_call *call, trine_kernel_edges *edges);

/* Longer ones, which are read twice. */
const char *norm_backward_refuse_long(const trine_call *call);
size_t norm_backward_workspace_long(const trine_call *call);
trine_status norm_backward_launch_long(const trine_call *call);
void norm_backward_edges_long(const trine_call *call, trine_kernel_edges *edges);

/* Of the sums over blocks. */
void norm_backward_edges_finish(const trine_call *call, trine_kernel_edges *edges);

/* As few turns as hold the rows of `group` in `held` blocks, in no more of these than that takes. */
int64_t norm_backward_turns(simt_group *group, int64_t held);

#define NORM_BACKWARD_KERNELS(op) \
    { .name = SIMT_NAME, \
      .refuse = norm_backward_refuse_rows, \
      .workspace = norm_backward_workspace_rows, \
      .launch = norm_backward_launch_rows, \
      .edges = norm_backward_edges_rows, \
      .self = &(op) }, \
    { \
        .name = SIMT_NAME "_long", .refuse = norm_backward_refuse_long, .workspace = norm_backward_workspace_long, \
        .launch = norm_backward_launch_long, .edges = norm_backward_edges_long, .self = &(op) \
    }

#endif
