/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of matmul for 16-bit elements with few rows or columns. */
#ifndef TRINE_CUDA_MATMUL_FEW_HOST_H
#define TRINE_CUDA_MATMUL_FEW_HOST_H

#include "matmul_host.h"

const char *matmul_few_refuse(const trine_call *call);
size_t matmul_few_workspace(const trine_call *call);
trine_status matmul_few_launch(const trine_call *call);
double matmul_few_seconds(const trine_call *call);

#endif
