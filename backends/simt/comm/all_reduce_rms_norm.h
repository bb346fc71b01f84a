/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of all_reduce_rms_norm passes to its device side. */
#ifndef TRINE_SIMT_ALL_REDUCE_RMS_NORM_H
#define TRINE_SIMT_ALL_REDUCE_RMS_NORM_H

#include "backends/simt/core/params.h"
#include "exchange.h"

/* Blocks of a unit, and the elements of a row that their threads keep in registers. */
enum { RMS_HELD = 2, RMS_KEPT = 16 };

typedef struct rms_params {
    exchange_params exchange; /* x and y by rows, n: elements of a row */
    simt_rows weight, residual, residual_out;
    int64_t rows;
    float *rstd; /* NULL: not asked for */
    float *h;    /* a row for each block, of which what registers do not hold is used */
    float eps, weight_offset;
    bool round;                    /* before the weight */
    bool f32_residual, f32_weight; /* else of x's type */
} rms_params;

#endif
