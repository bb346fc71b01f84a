/* SPDX-License-Identifier: Apache-2.0 */
/* What dequantize's host side passes to its device side. */
#ifndef TRINE_SIMT_DEQUANTIZE_H
#define TRINE_SIMT_DEQUANTIZE_H

#include "codes.h"

typedef struct dequantize_params {
    simt_codes codes;
    int64_t units; /* of all groups */
    simt_divisor group_units;
} dequantize_params;

#endif
