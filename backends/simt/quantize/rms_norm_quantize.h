/* SPDX-License-Identifier: Apache-2.0 */
/* What rms_norm_quantize's host side passes to its device side. */
#ifndef TRINE_SIMT_RMS_NORM_QUANTIZE_H
#define TRINE_SIMT_RMS_NORM_QUANTIZE_H

#include "rows.h"

typedef struct rms_norm_quantize_params {
    row_codes out;
    simt_rows x, residual, weight, residual_out;
    bool residual_wide, weight_wide; /* f32, and not the type of x */
    float eps, weight_offset;
} rms_norm_quantize_params;

#endif
