/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_weights on devices, without matrix units: a block has 64 rows and 128 columns of a group's result.
 *
 * NOTES. Floor: a group's rows of dy once for each tile of columns, those of x once for each tile of rows. */
#include "grouped_matmul_weights_simt.inl.h"

ENTRY(grouped_matmul_weights_f32_f32, SIMT_THREADS, weights_params) { grouped_weights<f32, f32>(p); }
ENTRY(grouped_matmul_weights_bf16_bf16, SIMT_THREADS, weights_params) { grouped_weights<bf16, bf16>(p); }
ENTRY(grouped_matmul_weights_bf16_f32, SIMT_THREADS, weights_params) { grouped_weights<bf16, f32>(p); }
ENTRY(grouped_matmul_weights_f16_f16, SIMT_THREADS, weights_params) { grouped_weights<f16, f16>(p); }
ENTRY(grouped_matmul_weights_f16_f32, SIMT_THREADS, weights_params) { grouped_weights<f16, f32>(p); }
