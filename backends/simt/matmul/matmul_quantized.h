/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul_quantized's host side passes to its device side. */
#ifndef TRINE_SIMT_MATMUL_QUANTIZED_H
#define TRINE_SIMT_MATMUL_QUANTIZED_H

#include "backends/simt/core/params.h"

/* Threads that have a row of codes, and the rows of x at most: of more it pays to write the weights down. 16 by 4096 by
 * 14336 took 480 us on an H200, in four turns. */
enum { QUANTIZED_TEAM = 32, QUANTIZED_ROWS = 4 };

typedef enum quantized_float { QUANTIZED_F32, QUANTIZED_BF16, QUANTIZED_F16 } quantized_float;

typedef struct quantized_params {
    simt_rows x, scales, zeros, mins, y;
    const uint8_t *codes;
    int64_t codes_row, codes_group; /* strides in bytes */
    const void *bias;
    int64_t n;
    simt_divisor group; /* codes of one, or where codes are fetched by words of four bytes, those words */
    int32_t m, groups, bits, activation;
    float none; /* what is taken from 2^23 + code: the offset, and 2^23; from a code of e2m1 the offset alone */
    bool e2m1;
    uint32_t flip;                 /* of a word: what turns signed codes into unsigned ones */
    bool words;                    /* are codes fetched by words? */
    bool codes_aligned, x_aligned; /* are these words, and x's elements vectors, in memory? */
    bool codes_vectors;            /* are four words one access, and groups one behind the other? */
    quantized_float scale_type, out_type, bias_type;
} quantized_params;

#endif
