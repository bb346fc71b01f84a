/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of matmul_quantized for few rows of x. */
#ifndef TRINE_SIMT_MATMUL_QUANTIZED_HOST_H
#define TRINE_SIMT_MATMUL_QUANTIZED_HOST_H

#include <trine/quantize.h>

#include "matmul_quantized.h"
#include "backends/simt/core/host.h"
#include "spec/places/matmul_quantized.h"

static inline quantized_float quantized_float_of(trine_dtype type) {
    return type == TRINE_F32 ? QUANTIZED_F32 : type == TRINE_BF16 ? QUANTIZED_BF16 : QUANTIZED_F16;
}

/* Are rows at multiples of so many bytes? */
static inline bool quantized_aligned(const trine_tensor *t, int bytes) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    bool whole = (uintptr_t)t->data % (uintptr_t)bytes == 0;
    for (int d = 0; d < t->rank - 1; d++) whole = whole && t->stride[d] * size % bytes == 0;
    return whole;
}

static inline quantized_params quantized_params_of(const trine_call *call) {
    const trine_matmul_quantized_args *args = call->args;
    const trine_tensor *x = &call->tensor[MATMUL_QUANTIZED_X], *codes = &call->tensor[MATMUL_QUANTIZED_CODES];
    const int64_t m = call->dim[MATMUL_QUANTIZED_DIM_M], n = call->dim[MATMUL_QUANTIZED_DIM_N],
                  k = call->dim[MATMUL_QUANTIZED_DIM_K], groups = k > 0 ? call->dim[MATMUL_QUANTIZED_DIM_GROUPS] : 0,
                  bytes = call->dim[MATMUL_QUANTIZED_DIM_BYTES];
    const int bits = k > 0 ? (int)(8 * bytes * groups / k) : 8;
    const bool e2m1 = args->format == TRINE_CODES_E2M1;
    /* No code is then in two words. It follows from sizes alone, since the order of sums does. */
    const bool words = groups > 0 && 8 % bits == 0 && bytes % 4 == 0,
               is_signed = call->type[MATMUL_QUANTIZED_TYPE_C] == TRINE_I8;
    const int64_t group = words ? bytes / 4 : groups > 0 ? k / groups : 1;
    quantized_params p = { .x = simt_rows_of(call, MATMUL_QUANTIZED_X),
                           .scales = simt_rows_of(call, MATMUL_QUANTIZED_SCALES),
                           .zeros = simt_rows_of(call, MATMUL_QUANTIZED_ZEROS),
                           .mins = simt_rows_of(call, MATMUL_QUANTIZED_MINS),
                           .y = simt_rows_of(call, MATMUL_QUANTIZED_Y),
                           .codes = codes->data,
                           .codes_row = codes->stride[0],
                           .codes_group = codes->stride[1],
                           .bias = simt_present(call, MATMUL_QUANTIZED_BIAS) ? call->tensor[MATMUL_QUANTIZED_BIAS].data
                                                                             : NULL,
                           .n = n,
                           .group = simt_divisor_of(group),
                           .m = (int32_t)m,
                           .groups = (int32_t)groups,
                           .bits = bits,
                           .none = (float)(args->offset + (e2m1 ? 0 : 1 << 23) + (is_signed ? 1 << (bits - 1) : 0)),
                           .e2m1 = e2m1,
                           .activation = args->activation,
                           .words = words,
                           .codes_aligned = quantized_aligned(codes, 4),
                           .codes_vectors = codes->stride[1] == bytes && quantized_aligned(codes, 16),
                           .x_aligned = quantized_aligned(x, 16),
                           .scale_type = quantized_float_of(call->type[MATMUL_QUANTIZED_TYPE_S]),
                           .out_type = quantized_float_of(call->type[MATMUL_QUANTIZED_TYPE_O]),
                           .bias_type = quantized_float_of(call->type[MATMUL_QUANTIZED_TYPE_B]) };
    for (int at = bits - 1; is_signed && at < (words ? 32 : bits); at += bits) p.flip |= 1u << at;
    return p;
}

/* A kernel's functions for up to 4 rows. */
static inline const char *quantized_few_refuse(const trine_call *call) {
    if (call->dim[MATMUL_QUANTIZED_DIM_K] > INT32_MAX) return "rows of more than 2^31 - 1 weights";
    return call->dim[MATMUL_QUANTIZED_DIM_M] > QUANTIZED_ROWS ? "more than 4 rows" : NULL;
}

static inline trine_status quantized_few_launch(const trine_call *call) {
    const quantized_params p = quantized_params_of(call);
    const simt_function function = { .type = { call->type[MATMUL_QUANTIZED_TYPE_T] },
                                     .variant = p.m == 1 ? 1 : QUANTIZED_ROWS };
    return simt_launch(call, &function, simt_blocks(p.n, SIMT_THREADS / QUANTIZED_TEAM), SIMT_THREADS, &p, sizeof p);
}

static inline void quantized_few_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, 1);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, QUANTIZED_ROWS);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_BYTES, 4);
}

#endif
