/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on CUDA devices: few rows of x without tensor cores, more with those of sm_80. */
#include "backends/simt/matmul/matmul_quantized.inl.h"

#include "matmul_quantized_mma.h"

#define QUANTIZED_TILES(T, tiles) \
    ENTRY(matmul_quantized_tiles4_##T##_##tiles, SIMT_THREADS, quantized_params) { quantized_mma<T, tiles, 4>(p); } \
    ENTRY(matmul_quantized_tiles_##T##_##tiles, SIMT_THREADS, quantized_params) { quantized_mma<T, tiles, 0>(p); }
#define QUANTIZED_TILES_OF(T) QUANTIZED_TILES(T, 1) QUANTIZED_TILES(T, 2) QUANTIZED_TILES(T, 4) QUANTIZED_TILES(T, 8)
QUANTIZED_TILES_OF(bf16)
QUANTIZED_TILES_OF(f16)
