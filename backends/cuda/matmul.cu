/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: by the tensor cores of sm_80, without any, and the packing of operands. */
#include "matmul_mma.h"
#include "matmul_pack.h"
#include "matmul_simt.h"

#define SIMT(kind, name, T) \
    ENTRY_HELD(matmul_simt_##name, MATMUL_THREADS, 2, matmul_params) { matmul_##kind<T>(p); }
SIMT(copied, f32, matmul_float<f32>)
SIMT(staged, f16, matmul_float<f16>)
SIMT(staged, bf16, matmul_float<bf16>)
SIMT(staged, i8, matmul_int8)
ENTRY(matmul_simt_f64, MATMUL_THREADS, matmul_params) { matmul_copied<matmul_double>(p); }

ENTRY(matmul_pack_8, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint8_t>(p); }
ENTRY(matmul_pack_16, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint16_t>(p); }

/* The parts of a name: a's and b's consecutive direction, k or lane. */
#define MMA(name, T, a, b, A_ACROSS, B_ACROSS) \
    ENTRY_HELD(matmul_mma_##name##_##a##b, MATMUL_THREADS, 2, matmul_params) { matmul_mma<T, A_ACROSS, B_ACROSS>(p); }
#define MMA_16(T) MMA(T, T, k, k, false, false) MMA(T, T, k, l, false, true) MMA(T, T, l, k, true, false) MMA(T, T, l, l, true, true)
MMA_16(bf16)
MMA_16(f16)
MMA(i8, int8_t, k, k, false, false)
