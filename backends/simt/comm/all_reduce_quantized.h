/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of all_reduce_quantized passes to its device side. */
#ifndef TRINE_SIMT_ALL_REDUCE_QUANTIZED_H
#define TRINE_SIMT_ALL_REDUCE_QUANTIZED_H

#include "backends/simt/core/params.h"

/* The sum of what all ranks' codes stand for, or what those of the sum do. */
typedef struct decoded_params {
    const uint8_t *codes; /* of each rank, n of them */
    const float *scales;  /* of each rank */
    void *y;
    int64_t n, blocks; /* blocks: of a rank, with a scale each */
    simt_divisor block;
    int32_t ranks;
    bool float8; /* e4m3; else i8 */
} decoded_params;

#endif
