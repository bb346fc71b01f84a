/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_quantized on devices: the tiles of grouped_matmul, for which a thread fetches a unit of codes and the
 * numbers of its group, and makes weights of them where the block keeps them.
 *
 * NOTES. Floor: codes once for each tile of rows, and x once for each tile of columns. Products are made in f32
 * whatever the type. */
#include "grouped_matmul_codes.inl.h"

ENTRY(grouped_matmul_quantized_plan, SIMT_THREADS, grouped_params) { grouped_plan(p); }

#define GROUPED_QUANTIZED(T, O) \
    ENTRY(grouped_matmul_quantized_##T##_##O, SIMT_THREADS, grouped_quantized_params) { \
        grouped_product<T, O>(p.rows, grouped_decoded(p)); \
    }
GROUPED_QUANTIZED(f32, f32)
GROUPED_QUANTIZED(bf16, bf16)
GROUPED_QUANTIZED(bf16, f32)
GROUPED_QUANTIZED(f16, f16)
GROUPED_QUANTIZED(f16, f32)
