/* SPDX-License-Identifier: Apache-2.0 */
/* What grouped_matmul_scaled's host side passes to its device side. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_SCALED_H
#define TRINE_SIMT_GROUPED_MATMUL_SCALED_H

#include "matmul_scaled.h"
#include "backends/simt/matmul/grouped_matmul.h"

typedef struct grouped_scaled_params {
    grouped_params rows;
    scaled_params of;             /* x, the first group's matrix, k and types */
    const float *group_scale;     /* NULL: absent */
    int64_t w_group, scale_group; /* strides from a group to the next, in bytes */
} grouped_scaled_params;

#endif
