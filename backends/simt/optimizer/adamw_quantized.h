/* SPDX-License-Identifier: Apache-2.0 */
/* What adamw_quantized's host side passes to its device side. */
#ifndef TRINE_SIMT_ADAMW_QUANTIZED_H
#define TRINE_SIMT_ADAMW_QUANTIZED_H

#include "adamw_told.h"
#include "by_chance.h"
#include "dynamic_lines.h"
#include "backends/simt/core/params.h"

/* 32 threads have a block of 256 elements, 8 each, and then another: blocks of threads stay, so that tables are copied
 * to shared memory once for many. An SM holds HELD of them. */
enum {
    QUANTIZED_LINE = 32,
    QUANTIZED_LINES = (int)SIMT_THREADS / QUANTIZED_LINE,
    QUANTIZED_VECTOR = (int)DYNAMIC_BLOCK / QUANTIZED_LINE,
    QUANTIZED_HELD = 4,
    QUANTIZED_MOST = 1024 /* blocks of threads, where the number of SMs is not known */
};

/* What moments are read and written by. */
typedef struct quantized_codes {
    float m_value[256], v_value[256], m_middle[128], v_middle[256];
    dynamic_turns m_turns[DYNAMIC_EXPONENTS], v_turns[DYNAMIC_EXPONENTS];
    dynamic_line m_line[DYNAMIC_LINES], v_line[DYNAMIC_LINES];
} quantized_codes;

/* What the workspace has for all blocks. */
typedef struct adamw_quantized_shared {
    quantized_codes codes; /* first: aligned as all is */
    adamw_scalars scalars;
} adamw_quantized_shared;

typedef struct adamw_quantized_begin_params {
    adamw_told_params told;
    dynamic_codes codes;
    dynamic_lines m_lines, v_lines;
    adamw_quantized_shared *shared;
    float unit; /* what denominators and rates are multiplied by */
} adamw_quantized_begin_params;

typedef struct adamw_quantized_params {
    void *param, *copy; /* copy: NULL: absent */
    const void *grad;
    uint8_t *m, *v;
    float *m_most, *v_most;
    const adamw_quantized_shared *shared;
    const float *grad_scale; /* NULL: 1 */
    const float *found_inf;  /* NULL: 0 */
    int64_t n, step;         /* step: to the next of its blocks */
    float beta1, rest1, beta2, rest2, eps;
    by_chance chances;
    bool aligned, copy_bf16; /* the copy's type, not f16 */
} adamw_quantized_params;

#endif
