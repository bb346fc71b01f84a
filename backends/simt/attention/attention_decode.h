/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of attention_decode passes to its device side. */
#ifndef TRINE_SIMT_ATTENTION_DECODE_H
#define TRINE_SIMT_ATTENTION_DECODE_H

#include "backends/simt/core/params.h"

/* Keys of a part, of few rows and of many; and columns that threads can hold. */
enum { DECODE_FEW = 16, DECODE_SHORT = 256, DECODE_LONG = 1024, DECODE_COLUMNS = 768 };
enum { DECODE_F32, DECODE_BF16, DECODE_F16 }; /* types of queries */

/* A tensor of three leading dimensions: strides in elements. */
typedef struct decode_tensor {
    void *data;
    int64_t outer, middle, inner;
    bool aligned; /* units of 8 elements */
} decode_tensor;

typedef struct decode_params {
    decode_tensor q, k, v, out;
    decode_tensor lse; /* data NULL: not asked for */
    const int32_t *table, *lengths;
    int64_t table_row;
    const void *sinks; /* NULL: none */
    const float *k_scale, *v_scale;
    int64_t k_scale_step, v_scale_step;
    float *partial; /* of each problem, part and row the dv sums, the maximum in powers of 2, and the sum of weights */
    int64_t keys, pages, window; /* keys: of a sequence at most */
    simt_divisor page;
    int32_t sq, hk, group, rows, row_tiles, d, dv, part;
    int64_t parts;
    int32_t type; /* of q */
    float scale, softcap;
    bool latent; /* values are the keys' first columns */
    bool wide_sinks;
    bool wide; /* rows of queries, keys and values are whole units of 8 elements, aligned */
} decode_params;

#endif
