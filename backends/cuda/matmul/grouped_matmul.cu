/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on CUDA devices: bf16 and f16 by the tensor cores of sm_80 and later, f32 without. */
#include "backends/simt/matmul/grouped_matmul_simt.inl.h"

#include "grouped_matmul_mma.h"

ENTRY(grouped_matmul_plan, SIMT_THREADS, grouped_params) { grouped_plan(p); }
ENTRY(grouped_matmul_f32_f32, SIMT_THREADS, grouped_params) { grouped<f32, f32>(p); }
ENTRY(grouped_matmul_bf16_bf16, SIMT_THREADS, grouped_params) { grouped_mma<bf16, bf16>(p, grouped_weights(p)); }
ENTRY(grouped_matmul_bf16_f32, SIMT_THREADS, grouped_params) { grouped_mma<bf16, f32>(p, grouped_weights(p)); }
ENTRY(grouped_matmul_f16_f16, SIMT_THREADS, grouped_params) { grouped_mma<f16, f16>(p, grouped_weights(p)); }
ENTRY(grouped_matmul_f16_f32, SIMT_THREADS, grouped_params) { grouped_mma<f16, f32>(p, grouped_weights(p)); }
