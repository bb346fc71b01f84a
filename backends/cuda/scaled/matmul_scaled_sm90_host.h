/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of matmul_scaled for sm_90a. */
#ifndef TRINE_CUDA_MATMUL_SCALED_SM90_HOST_H
#define TRINE_CUDA_MATMUL_SCALED_SM90_HOST_H

#include "backends/backend.h"

const char *matmul_scaled_sm90_refuse(const trine_call *call);
trine_status matmul_scaled_sm90_launch(const trine_call *call);
void matmul_scaled_sm90_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
