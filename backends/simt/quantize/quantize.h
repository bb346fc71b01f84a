/* SPDX-License-Identifier: Apache-2.0 */
/* What quantize's host side passes to its device side. */
#ifndef TRINE_SIMT_QUANTIZE_H
#define TRINE_SIMT_QUANTIZE_H

#include "codes.h"

typedef struct quantize_params {
    simt_codes codes;
    int64_t k;
    float low, high;      /* the values that codes have */
    int32_t powers, ties; /* as of the op; ties: 0 by chance */
    float deviations;
    bool upward;
    simt_dropout chances;
    const int64_t *philox; /* their key and stream; NULL: those of `chances` */
} quantize_params;

#endif
