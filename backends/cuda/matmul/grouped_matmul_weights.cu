/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_weights on CUDA devices: bf16 and f16 by the tensor cores of sm_80 and later, f32 without. */
#include "backends/simt/matmul/grouped_matmul_weights_simt.inl.h"

#include "grouped_matmul_weights_mma.h"

ENTRY(grouped_matmul_weights_f32_f32, SIMT_THREADS, weights_params) { grouped_weights<f32, f32>(p); }
ENTRY(grouped_matmul_weights_bf16_bf16, SIMT_THREADS, weights_params) { grouped_weights_mma<bf16, bf16>(p); }
ENTRY(grouped_matmul_weights_bf16_f32, SIMT_THREADS, weights_params) { grouped_weights_mma<bf16, f32>(p); }
ENTRY(grouped_matmul_weights_f16_f16, SIMT_THREADS, weights_params) { grouped_weights_mma<f16, f16>(p); }
ENTRY(grouped_matmul_weights_f16_f32, SIMT_THREADS, weights_params) { grouped_weights_mma<f16, f32>(p); }
