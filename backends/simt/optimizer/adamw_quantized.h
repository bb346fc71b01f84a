/* SPDX-License-Identifier: Apache-2.0 */
/* What adamw_quantized's host side passes to its device side. */
#ifndef TRINE_SIMT_ADAMW_QUANTIZED_H
#define TRINE_SIMT_ADAMW_QUANTIZED_H

#include "adamw_told.h"
#include "by_chance.h"
#include "backends/simt/core/params.h"
#include "spec/optimizer/dynamic_codes.h"

enum { QUANTIZED_RUN = 8 }; /* blocks of 256 elements, which a block of threads takes one after the other */

/* What the workspace has for all blocks. */
typedef struct adamw_quantized_shared {
    adamw_scalars scalars;
    dynamic_codes codes;
} adamw_quantized_shared;

typedef struct adamw_quantized_begin_params {
    adamw_told_params told;
    dynamic_codes codes;
    adamw_quantized_shared *shared;
} adamw_quantized_begin_params;

typedef struct adamw_quantized_params {
    void *param, *copy; /* copy: NULL: absent */
    const void *grad;
    uint8_t *m, *v;
    float *m_most, *v_most;
    const adamw_quantized_shared *shared;
    const float *grad_scale; /* NULL: 1 */
    const float *found_inf;  /* NULL: 0 */
    int64_t n;
    float beta1, rest1, beta2, rest2, eps;
    by_chance chances;
    bool copy_bf16; /* the copy's type, not f16 */
} adamw_quantized_params;

#endif
