/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on devices: the host side. */
#include "matmul_quantized.h"
#include "backends/simt/core/host.h"
#include "spec/places/matmul_quantized.h"

static const char *refuse(const trine_call *call) {
    if (call->dim[MATMUL_QUANTIZED_DIM_K] > INT32_MAX) return "rows of more than 2^31 - 1 weights";
    return call->dim[MATMUL_QUANTIZED_DIM_M] > QUANTIZED_ROWS ? "more than 4 rows" : NULL;
}

static quantized_float float_of(trine_dtype type) {
    return type == TRINE_F32 ? QUANTIZED_F32 : type == TRINE_BF16 ? QUANTIZED_BF16 : QUANTIZED_F16;
}

/* Are rows at multiples of so many bytes? */
static bool aligned(const trine_tensor *t, int bytes) {
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    bool whole = (uintptr_t)t->data % (uintptr_t)bytes == 0;
    for (int d = 0; d < t->rank - 1; d++) whole = whole && t->stride[d] * size % bytes == 0;
    return whole;
}

static trine_status launch(const trine_call *call) {
    const trine_matmul_quantized_args *args = call->args;
    const trine_tensor *x = &call->tensor[MATMUL_QUANTIZED_X], *codes = &call->tensor[MATMUL_QUANTIZED_CODES];
    const int64_t m = call->dim[MATMUL_QUANTIZED_DIM_M], n = call->dim[MATMUL_QUANTIZED_DIM_N],
                  k = call->dim[MATMUL_QUANTIZED_DIM_K], groups = k > 0 ? call->dim[MATMUL_QUANTIZED_DIM_GROUPS] : 0,
                  bytes = call->dim[MATMUL_QUANTIZED_DIM_BYTES];
    const int bits = k > 0 ? (int)(8 * bytes * groups / k) : 8, rows = m == 1 ? 1 : QUANTIZED_ROWS;
    const int64_t teams = SIMT_THREADS / QUANTIZED_TEAM;
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
                           .codes_aligned = aligned(codes, 4),
                           .x_aligned = aligned(x, 16),
                           .scale_type = float_of(call->type[MATMUL_QUANTIZED_TYPE_S]),
                           .out_type = float_of(call->type[MATMUL_QUANTIZED_TYPE_O]),
                           .bias_type = float_of(call->type[MATMUL_QUANTIZED_TYPE_B]) };
    for (int at = bits - 1; is_signed && at < (words ? 32 : bits); at += bits) p.flip |= 1u << at;
    const simt_function function = { .type = { call->type[MATMUL_QUANTIZED_TYPE_T] }, .variant = rows };
    return simt_launch(call, &function, (n + teams - 1) / teams, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, 1);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, QUANTIZED_ROWS);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_BYTES, 4);
}

SIMT_KERNELS(matmul_quantized) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
