/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: by the tensor cores of sm_80, without any, and the packing of operands. */
#include "matmul_mma.h"
#include "matmul_pack.h"
#include "matmul_simt.h"

#define SIMT(name, T) \
    ENTRY(matmul_simt_##name, MATMUL_THREADS, matmul_params) { matmul_simt<T>(p); }
#define SIMT_TWO(name, T) \
    ENTRY_HELD(matmul_simt_##name, MATMUL_THREADS, 2, matmul_params) { matmul_simt<T>(p); }
SIMT_TWO(f32, matmul_float<f32>)
SIMT_TWO(f16, matmul_float<f16>)
SIMT_TWO(bf16, matmul_float<bf16>)
SIMT_TWO(i8, matmul_int8)
SIMT(f64, matmul_double)

ENTRY(matmul_pack_8, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint8_t>(p); }
ENTRY(matmul_pack_16, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint16_t>(p); }

#define MMA(name, T) \
    ENTRY_HELD(matmul_mma_##name, MATMUL_THREADS, 2, matmul_params) { matmul_mma<T>(p); }
MMA(bf16, bf16)
MMA(f16, f16)
MMA(i8, int8_t)
