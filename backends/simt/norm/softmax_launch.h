/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that softmax and its gradient have on all devices. */
#ifndef TRINE_SIMT_SOFTMAX_LAUNCH_H
#define TRINE_SIMT_SOFTMAX_LAUNCH_H

#include "backends/simt/core/host.h"
#include "softmax.h"
#include "spec/alike.h"
#include "spec/places/softmax.h"
#include "spec/places/softmax_backward.h"

/* Entries are named by these. */
TRINE_ALIKE(SOFTMAX_TYPE_T, SIMT_FIRST_TYPE);
TRINE_ALIKE(SOFTMAX_BACKWARD_TYPE_T, SIMT_FIRST_TYPE);

/* The f and the spread of softmax_params for a scale. */
void softmax_scale_of(float scale, float *f_out, float *spread_out);

softmax_params softmax_params_of(const trine_call *call);
softmax_backward_params softmax_backward_params_of(const trine_call *call);

/* Are the rows of all matrices so many strides from each other, as those of one? */
bool softmax_one_matrix(const softmax_params *p);
bool softmax_backward_one_matrix(const softmax_backward_params *p);

/* Rows in registers, by groups of row.h: of any length and alignment. */
trine_status softmax_launch_rows(const trine_call *call);
trine_status softmax_backward_launch_rows(const trine_call *call);
void softmax_edges_rows(const trine_call *call, trine_kernel_edges *edges);
void softmax_backward_edges_rows(const trine_call *call, trine_kernel_edges *edges);

/* With the same bits on every device. */
trine_status softmax_launch_same(const trine_call *call);
void softmax_edges_same(const trine_call *call, trine_kernel_edges *edges);

#define SOFTMAX_SAME_KERNEL \
    { .name = SIMT_NAME "_same", .launch = softmax_launch_same, .edges = softmax_edges_same, .same = true }

#endif
