/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of grouped_matmul for sm_90a. */
#ifndef TRINE_CUDA_GROUPED_MATMUL_SM90_HOST_H
#define TRINE_CUDA_GROUPED_MATMUL_SM90_HOST_H

#include "backends/backend.h"

const char *grouped_matmul_sm90_refuse(const trine_call *call);
size_t grouped_matmul_sm90_workspace(const trine_call *call);
trine_status grouped_matmul_sm90_launch(const trine_call *call);
void grouped_matmul_sm90_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
