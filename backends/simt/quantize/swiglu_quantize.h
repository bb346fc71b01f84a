/* SPDX-License-Identifier: Apache-2.0 */
/* What swiglu_quantize's host side passes to its device side. */
#ifndef TRINE_SIMT_SWIGLU_QUANTIZE_H
#define TRINE_SIMT_SWIGLU_QUANTIZE_H

#include "rows.h"

typedef struct swiglu_quantize_params {
    row_codes out;
    simt_rows gate, up, factor;
    int64_t items; /* groups of all rows */
    bool gelu;
} swiglu_quantize_params;

#endif
