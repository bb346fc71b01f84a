/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of all_reduce_rms_norm_quantize passes to its device side. */
#ifndef TRINE_SIMT_ALL_REDUCE_RMS_NORM_QUANTIZE_H
#define TRINE_SIMT_ALL_REDUCE_RMS_NORM_QUANTIZE_H

#include "backends/simt/core/params.h"
#include "exchange.h"

typedef struct summed_rows_params {
    exchange_params exchange; /* lines: rows, y: those of f32 */
    simt_rows residual, residual_out;
    bool f32_residual; /* else of x's type */
} summed_rows_params;

#endif
