/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on devices, without matrix units: a block has a tile of rows and 128 columns, a thread 4 x 8 sums,
 * each in the order of k.
 *
 * NOTES. Floor: w once for each tile of rows, and x once for each tile of columns. Products are made in f32 whatever
 * the type. */
#include "grouped_matmul_simt.inl.h"

ENTRY(grouped_matmul_plan, SIMT_THREADS, grouped_params) { grouped_plan(p); }
ENTRY(grouped_matmul_f32_f32, SIMT_THREADS, grouped_params) { grouped<f32, f32>(p); }
ENTRY(grouped_matmul_bf16_bf16, SIMT_THREADS, grouped_params) { grouped<bf16, bf16>(p); }
ENTRY(grouped_matmul_bf16_f32, SIMT_THREADS, grouped_params) { grouped<bf16, f32>(p); }
ENTRY(grouped_matmul_f16_f16, SIMT_THREADS, grouped_params) { grouped<f16, f16>(p); }
ENTRY(grouped_matmul_f16_f32, SIMT_THREADS, grouped_params) { grouped<f16, f32>(p); }
