/* SPDX-License-Identifier: Apache-2.0 */
/* The scales of the rows, or of the columns, of a matrix product: for host and device. */
#ifndef TRINE_SIMT_SCALES_H
#define TRINE_SIMT_SCALES_H

#include <stdint.h>

/* Strides in elements, 0 where one is for all. */
typedef struct simt_scales {
    const float *data; /* NULL: absent */
    int64_t batch, step;
} simt_scales;

#endif
