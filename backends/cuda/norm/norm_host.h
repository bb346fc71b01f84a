/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that the norms and their gradients have on CUDA devices besides those of backends/simt. */
#ifndef TRINE_CUDA_NORM_HOST_H
#define TRINE_CUDA_NORM_HOST_H

#include "backends/simt/norm/norm_launch.h"

/* Rows that fill the registers of a group. */
const char *norm_refuse_fit(const trine_call *call);
trine_status norm_launch_fit(const trine_call *call);
void norm_edges_fit(const trine_call *call, trine_kernel_edges *edges);

/* Rows in shared memory. */
const char *norm_refuse_shared(const trine_call *call);
trine_status norm_launch_shared(const trine_call *call);
void norm_edges_shared(const trine_call *call, trine_kernel_edges *edges);

/* Gradients of rows through a ring in shared memory, and of rows that fill the registers of a group. */
const char *norm_backward_refuse_ring(const trine_call *call);
size_t norm_backward_workspace_ring(const trine_call *call);
trine_status norm_backward_launch_ring(const trine_call *call);
void norm_backward_edges_ring(const trine_call *call, trine_kernel_edges *edges);
const char *norm_backward_refuse_fit(const trine_call *call);
size_t norm_backward_workspace_fit(const trine_call *call);
trine_status norm_backward_launch_fit(const trine_call *call);
void norm_backward_edges_fit(const trine_call *call, trine_kernel_edges *edges);

#define NORM_BACKWARD_KERNELS_CUDA(op) \
    { .name = SIMT_NAME "_ring", \
      .refuse = norm_backward_refuse_ring, \
      .workspace = norm_backward_workspace_ring, \
      .launch = norm_backward_launch_ring, \
      .edges = norm_backward_edges_ring, \
      .self = &(op) }, \
    { \
        .name = SIMT_NAME "_fit", .refuse = norm_backward_refuse_fit, .workspace = norm_backward_workspace_fit, \
        .launch = norm_backward_launch_fit, .edges = norm_backward_edges_fit, .self = &(op) \
    }

/* The first of `count` groups that holds rows of n columns, if those are whole vectors; NULL: none. Rows that begin
 * anywhere have it too, since sums must not depend on that. */
const norm_fit *norm_fit_among(int64_t n, int count, const norm_fit *fits);
/* And their edges. */
void norm_fit_edges(int count, const norm_fit *fits, trine_kernel_edges *edges);

#endif
