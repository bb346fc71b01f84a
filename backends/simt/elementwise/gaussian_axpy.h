/* SPDX-License-Identifier: Apache-2.0 */
/* What gaussian_axpy's host side passes to its device side. */
#ifndef TRINE_SIMT_GAUSSIAN_AXPY_H
#define TRINE_SIMT_GAUSSIAN_AXPY_H

#include "backends/simt/core/params.h"

typedef struct gaussian_axpy_params {
    simt_walk walk;
    simt_dropout generator; /* of which the key and the stream count */
    const int64_t *philox;  /* its key and stream; NULL: those of `generator` */
    const float *told;      /* NULL: alpha */
    float alpha;
} gaussian_axpy_params;

#endif
