/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric on CUDA devices: bf16 and f16 by the tensor cores of sm_80 and later, f32 and f64 without. */
#include "backends/simt/symmetric/matmul_symmetric_simt.inl.h"

#include "matmul_symmetric_mma.h"
#include "backends/simt/symmetric/matmul_symmetric_mirror.inl.h"

ENTRY(matmul_symmetric_f32_f32, SIMT_THREADS, symmetric_params) {
    symmetric_product<symmetric_float<f32>, symmetric_float<f32>>(p);
}
ENTRY(matmul_symmetric_f64_f64, SIMT_THREADS, symmetric_params) {
    symmetric_product<symmetric_double, symmetric_double>(p);
}
ENTRY(matmul_symmetric_mma_k_bf16, symmetric_shape::THREADS, matmul_params) { symmetric_mma<bf16, false>(p); }
ENTRY(matmul_symmetric_mma_l_bf16, symmetric_shape::THREADS, matmul_params) { symmetric_mma<bf16, true>(p); }
ENTRY(matmul_symmetric_mma_k_f16, symmetric_shape::THREADS, matmul_params) { symmetric_mma<f16, false>(p); }
ENTRY(matmul_symmetric_mma_l_f16, symmetric_shape::THREADS, matmul_params) { symmetric_mma<f16, true>(p); }
SYMMETRIC_MIRRORS
