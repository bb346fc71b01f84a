/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of conv2d for sm_90a. */
#ifndef TRINE_CUDA_CONV2D_SM90_HOST_H
#define TRINE_CUDA_CONV2D_SM90_HOST_H

#include "backends/backend.h"

const char *conv2d_sm90_refuse(const trine_call *call);
size_t conv2d_sm90_workspace(const trine_call *call);
trine_status conv2d_sm90_launch(const trine_call *call);
void conv2d_sm90_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
