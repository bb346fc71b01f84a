/* SPDX-License-Identifier: Apache-2.0 */
/* What grouped_matmul_quantized's host side passes to its device side. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_QUANTIZED_H
#define TRINE_SIMT_GROUPED_MATMUL_QUANTIZED_H

#include "grouped_matmul.h"
#include "backends/simt/quantize/codes.h"

typedef struct grouped_quantized_params {
    grouped_params rows;
    simt_codes codes;   /* of the first expert; a row's groups are those of a column of the product */
    simt_divisor group; /* numbers of one */
    int64_t codes_expert, scales_expert, zeros_expert, mins_expert; /* strides in elements */
    bool units;                                                     /* are groups whole units of codes? */
} grouped_quantized_params;

#endif
