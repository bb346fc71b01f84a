/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of conv2d by x on sm_90a, for the kernels of conv2d_backward; tiles and slices are by prediction if
 * `tile` is 0. */
#ifndef TRINE_CUDA_CONV2D_BACKWARD_SM90_HOST_H
#define TRINE_CUDA_CONV2D_BACKWARD_SM90_HOST_H

#include "backends/simt/conv/conv.h"
#include "backends/backend.h"

const char *conv2d_backward_sm90_refuse(const trine_call *call, int tile, int slices, const conv_params *p);
void conv2d_backward_sm90_set(const trine_call *call, int tile, int slices, conv_params *p);
trine_status conv2d_backward_sm90_dx(const trine_call *call, int tile, int slices, conv_params *p);

#endif
