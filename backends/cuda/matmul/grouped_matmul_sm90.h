/* SPDX-License-Identifier: Apache-2.0 */
/* What grouped_matmul's host side passes to the kernels for sm_90a. */
#ifndef TRINE_CUDA_GROUPED_MATMUL_SM90_H
#define TRINE_CUDA_GROUPED_MATMUL_SM90_H

#include "rows_sm90.h"
#include "backends/simt/matmul/grouped_matmul.h"

typedef struct grouped_sm90_params {
    tensor_map x, w;
    grouped_params of;
    matmul_operand hand; /* w, if copies of boxes cannot read it; data NULL: they can */
    bool boxes;          /* of x: its rows follow each other */
    bool whole;          /* rows of y are whole pieces of 16 bytes */
} grouped_sm90_params;

#endif
