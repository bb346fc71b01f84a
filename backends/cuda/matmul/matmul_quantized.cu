/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on CUDA devices: with the tensor cores of sm_80, and few rows of x without them. */
#include "backends/simt/matmul/matmul_quantized.inl.h"

#include "matmul_quantized_codes.h"

#define QUANTIZED_CODES(T, tiles, blocks) \
    ENTRY_HELD(matmul_quantized_codes_##T##_##tiles, SIMT_THREADS, blocks, quantized_params) { \
        quantized_codes_tiles<T, tiles>(p); \
    }
#define QUANTIZED_CODES_OF(T) \
    QUANTIZED_CODES(T, 1, 2) QUANTIZED_CODES(T, 2, 2) QUANTIZED_CODES(T, 4, 1) QUANTIZED_CODES(T, 8, 1)
QUANTIZED_CODES_OF(bf16)
QUANTIZED_CODES_OF(f16)
