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

#endif
