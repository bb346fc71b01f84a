/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: by the tensor cores of sm_80, without any, and the packing of operands. */
#include "backends/simt/widen.inl.h"

#include "matmul_mma.h"
#include "matmul_pack.h"
#include "matmul_simt.h"

ENTRY_HELD(matmul_simt_f32, MATMUL_THREADS, 2, matmul_params) { matmul_copied<matmul_float<f32>>(p); }
ENTRY(matmul_simt_f64, MATMUL_THREADS, matmul_params) { matmul_copied<matmul_double>(p); }
ENTRY(matmul_simt_f16, MATMUL_THREADS, matmul_params) { matmul_staged<matmul_float<f16>>(p); }
ENTRY(matmul_simt_bf16, MATMUL_THREADS, matmul_params) { matmul_staged<matmul_float<bf16>>(p); }
ENTRY(matmul_simt_i8, MATMUL_THREADS, matmul_params) { matmul_staged<matmul_int8>(p); }

ENTRY(matmul_pack_8, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint8_t>(p); }
ENTRY(matmul_pack_16, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint16_t>(p); }
ENTRY(matmul_pack_32, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint32_t>(p); }
ENTRY(matmul_widen_e4m3, SIMT_WIDEN_THREADS, simt_widen_params) { simt_widen<e4m3>(p); }
ENTRY(matmul_widen_e5m2, SIMT_WIDEN_THREADS, simt_widen_params) { simt_widen<e5m2>(p); }

/* The parts of a name: a's and b's consecutive direction, k or lane. */
#define MMA(name, T, a, b, A_ACROSS, B_ACROSS) \
    ENTRY(matmul_mma_##name##_##a##b, MATMUL_THREADS, matmul_params) { matmul_mma<T, A_ACROSS, B_ACROSS>(p); }
#define MMA_16(T) MMA(T, T, k, k, false, false) MMA(T, T, k, l, false, true) MMA(T, T, l, k, true, false) MMA(T, T, l, l, true, true)
MMA_16(bf16)
MMA_16(f16)
MMA(i8, int8_t, k, k, false, false)
MMA(f32, tf32, k, k, false, false)
