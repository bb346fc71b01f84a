/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize_blocks on the CPU. */
#include "rows.h"
#include "spec/places/dequantize_blocks.h"
#include "spec/scaled/blocks.h"

typedef struct job {
    const trine_tensor *codes, *scales, *y;
    int64_t k, columns, high, wide; /* of the matrix; of scales; of a block */
} job;

INLINE vf code_load(const uint8_t *codes, int count, trine_dtype C) {
    vb bytes = { 0 };
    if (count >= VL)
        memcpy(&bytes, codes, VL);
    else
        memcpy(&bytes, codes, (size_t)count);
    const vi code = vb_widen(bytes);
    if (C == TRINE_I8) return __builtin_convertvector((code ^ 128) - 128, vf);
    return C == TRINE_E4M3 ? vf_from_codes(code, TRINE_E4M3) : vf_from_codes(code, TRINE_E5M2);
}

INLINE void expand_rows(const job *b, int64_t first, int64_t last, trine_dtype T) {
    const trine_dtype C = b->codes->dtype;
    for (int64_t i = first; i < last; i++) {
        const uint8_t *codes = (const uint8_t *)b->codes->data + i * b->codes->stride[0];
        char *y = (char *)b->y->data + i * b->y->stride[0] * (int64_t)vsize(T);
        for (int64_t left = 0; left < b->k; left += b->wide) {
            const int64_t right = b->wide < b->k - left ? left + b->wide : b->k;
            const vf scale = vset(codes_number(b->scales, i / b->high, left / b->wide));
            for (int64_t j = left; j < right; j += VL) {
                const int count = right - j < VL ? (int)(right - j) : VL;
                row_store(y, T, j, count, code_load(codes + j, count, C) * scale);
            }
        }
    }
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    FOR_TYPE(b->y->dtype, expand_rows, b, first, last);
}

static int64_t row_bytes(const trine_call *call) {
    return call->dim[DEQUANTIZE_BLOCKS_DIM_K] * (int64_t)(trine_dtype_size(call->type[DEQUANTIZE_BLOCKS_TYPE_T]) + 1);
}

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[DEQUANTIZE_BLOCKS_DIM_R], k = call->dim[DEQUANTIZE_BLOCKS_DIM_K];
    const job b = { .codes = &call->tensor[DEQUANTIZE_BLOCKS_CODES],
                    .scales = &call->tensor[DEQUANTIZE_BLOCKS_SCALES],
                    .y = &call->tensor[DEQUANTIZE_BLOCKS_Y],
                    .k = k,
                    .columns = call->dim[DEQUANTIZE_BLOCKS_DIM_COLUMNS],
                    .high = scaled_block(r, call->dim[DEQUANTIZE_BLOCKS_DIM_ROWS]),
                    .wide = scaled_block(k, call->dim[DEQUANTIZE_BLOCKS_DIM_COLUMNS]) };
    cpu_shares(call, cpu_team(call, r, r * row_bytes(call)), r, rows, &b);
    return TRINE_OK;
}

/* Vectors of a block; and the second thread. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, DEQUANTIZE_BLOCKS_DIM_K, VL);
    cpu_team_edge(edges, DEQUANTIZE_BLOCKS_DIM_R, row_bytes(call));
}

CPU_KERNELS(dequantize_blocks) = { { CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
