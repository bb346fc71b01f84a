/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on CUDA devices: by the tensor cores of sm_80, without any, the packing of operands, and the addition of
 * partial sums. */
#include "backends/simt/matmul/widen.inl.h"

#include "matmul_f32.h"
#include "matmul_f64.h"
#include "matmul_few.inl.h"
#include "matmul_mma.h"
#include "matmul_mma_few.h"
#include "matmul_pack.h"
#include "matmul_simt.h"
#include "matmul_skinny.h"
#include "matmul_tiles.h"

ENTRY(matmul_simt_f32, MATMUL_THREADS, matmul_params) { matmul_staged<matmul_float<f32>>(p); }
ENTRY(matmul_simt_f64, MATMUL_THREADS, matmul_params) { matmul_staged<matmul_double>(p); }
ENTRY(matmul_simt_f16, MATMUL_THREADS, matmul_params) { matmul_staged<matmul_float<f16>>(p); }
ENTRY(matmul_simt_bf16, MATMUL_THREADS, matmul_params) { matmul_staged<matmul_float<bf16>>(p); }
ENTRY(matmul_simt_i8, MATMUL_THREADS, matmul_params) { matmul_staged<matmul_int8>(p); }

ENTRY(matmul_copy_8, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint8_t>(p); }
ENTRY(matmul_copy_16, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint16_t>(p); }
ENTRY(matmul_copy_32, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint32_t>(p); }
ENTRY(matmul_copy_64, MATMUL_THREADS, matmul_pack_params) { matmul_pack<uint64_t>(p); }
ENTRY(matmul_widen_e4m3, SIMT_WIDEN_THREADS, simt_widen_params) { simt_widen<e4m3>(p); }
ENTRY(matmul_widen_e5m2, SIMT_WIDEN_THREADS, simt_widen_params) { simt_widen<e5m2>(p); }

ENTRY(matmul_add_f32, MATMUL_THREADS, matmul_add_params) { matmul_add_parts<float>(p); }
ENTRY(matmul_add_f64, MATMUL_THREADS, matmul_add_params) { matmul_add_parts<double>(p); }
ENTRY(matmul_add_i32, MATMUL_THREADS, matmul_add_params) { matmul_add_parts<int32_t>(p); }

/* The parts of a name: a tile, and a's and b's consecutive direction, k or lane. */
#define MMA(name, T, ROWS, COLUMNS, DOWN, RIGHT, a, b, A_ACROSS, B_ACROSS) \
    ENTRY(matmul_mma_##ROWS##x##COLUMNS##_##name##_##a##b, \
          (matmul_mma_shape<ROWS, COLUMNS, DOWN, RIGHT, MATMUL_MMA_STAGES>::THREADS), matmul_params) { \
        matmul_mma<T, matmul_mma_shape<ROWS, COLUMNS, DOWN, RIGHT, MATMUL_MMA_STAGES>, A_ACROSS, B_ACROSS>(p); \
    }
#define MMA_16(T, ROWS, COLUMNS, DOWN, RIGHT) \
    MMA(T, T, ROWS, COLUMNS, DOWN, RIGHT, k, k, false, false) \
    MMA(T, T, ROWS, COLUMNS, DOWN, RIGHT, k, l, false, true) \
    MMA(T, T, ROWS, COLUMNS, DOWN, RIGHT, l, k, true, false) MMA(T, T, ROWS, COLUMNS, DOWN, RIGHT, l, l, true, true)
#define MMA_ALL(ROWS, COLUMNS, DOWN, RIGHT, ...) \
    MMA_16(bf16, ROWS, COLUMNS, DOWN, RIGHT) \
    MMA_16(f16, ROWS, COLUMNS, DOWN, RIGHT) \
    MMA(i8, int8_t, ROWS, COLUMNS, DOWN, RIGHT, k, k, false, false) \
    MMA(f32, tf32, ROWS, COLUMNS, DOWN, RIGHT, k, k, false, false)
MATMUL_MMA_TILES(MMA_ALL)

/* The parts of a name: tokens at most, and the weights' consecutive direction, k or lane. */
#define MMA_FEW(name, T, TOKENS, x, ACROSS) \
    ENTRY_HELD(matmul_mma_few_##name##_##TOKENS##x, MATMUL_MMA_FEW_WARPS(ACROSS) * WARP, 1, matmul_mma_few_params) { \
        matmul_mma_few<T, TOKENS, ACROSS>(p); \
    }
#define MMA_FEW_K(TOKENS) \
    MMA_FEW(bf16, bf16, TOKENS, k, false) \
    MMA_FEW(f16, f16, TOKENS, k, false) MMA_FEW(i8, int8_t, TOKENS, k, false) MMA_FEW(f32, tf32, TOKENS, k, false)
#define MMA_FEW_L(TOKENS) MMA_FEW(bf16, bf16, TOKENS, l, true) MMA_FEW(f16, f16, TOKENS, l, true)
MMA_FEW_K(8)
MMA_FEW_K(16)
MMA_FEW_K(32)
MMA_FEW_L(8)
MMA_FEW_L(16)
MMA_FEW_L(32)

/* The parts of a name: lanes that are few, the consecutive direction of the operand with many, and blocks of which an
 * SM is full. */
#define SKINNY(name, T, FEW, x, ACROSS, HELD) \
    ENTRY_HELD(matmul_skinny_##name##_##FEW##x##_##HELD, (matmul_skinny_shape<T, FEW, ACROSS, HELD>::THREADS), HELD, \
               matmul_skinny_params) { \
        matmul_skinny<T, FEW, ACROSS, HELD>(p); \
    }
#define SKINNY_ALL(name, T, FEW) \
    SKINNY(name, T, FEW, k, false, 1) \
    SKINNY(name, T, FEW, k, false, 2) SKINNY(name, T, FEW, l, true, 1) SKINNY(name, T, FEW, l, true, 2)
SKINNY_ALL(f32, matmul_float<f32>, 1)
SKINNY_ALL(f32, matmul_float<f32>, 2)
SKINNY_ALL(f32, matmul_float<f32>, 4)
SKINNY_ALL(f32, matmul_float<f32>, 8)
SKINNY_ALL(f64, matmul_double, 1)
SKINNY_ALL(f64, matmul_double, 2)
SKINNY_ALL(f64, matmul_double, 4)
SKINNY_ALL(f64, matmul_double, 8)

/* The parts of a name: lanes that are few; whether pieces of 16 bytes begin at such. */
#define FEW(T, FEW) \
    ENTRY_AHEAD(matmul_few_##T##_##FEW, MATMUL_FEW_THREADS, 1, matmul_few_params) { matmul_few<T, FEW, true>(p); } \
    ENTRY_AHEAD(matmul_few_##T##_##FEW##_odd, MATMUL_FEW_THREADS, 1, matmul_few_params) { \
        matmul_few<T, FEW, false>(p); \
    }
FEW(bf16, 8)
FEW(bf16, 16)
FEW(f16, 8)
FEW(f16, 16)

/* The parts of a name: a tile, and consecutive directions as above. */
#define F32(ROWS, COLUMNS, GROUPS, STAGES, HELD, a, b, A_ACROSS, B_ACROSS) \
    ENTRY_HELD(matmul_f32_##ROWS##x##COLUMNS##_##a##b, (matmul_f32_shape<ROWS, COLUMNS, GROUPS>::THREADS), HELD, \
               matmul_params) { \
        matmul_f32<ROWS, COLUMNS, GROUPS, STAGES, A_ACROSS, B_ACROSS>(p); \
    }
#define F32_ALL(ROWS, COLUMNS, GROUPS, STAGES, HELD, ...) \
    F32(ROWS, COLUMNS, GROUPS, STAGES, HELD, k, k, false, false) \
    F32(ROWS, COLUMNS, GROUPS, STAGES, HELD, k, l, false, true) \
    F32(ROWS, COLUMNS, GROUPS, STAGES, HELD, l, k, true, false) \
    F32(ROWS, COLUMNS, GROUPS, STAGES, HELD, l, l, true, true)
MATMUL_F32_TILES(F32_ALL)

#define F64(ROWS, COLUMNS, DOWN, RIGHT, GROUPS, STAGES, HELD, a, b, A_ACROSS, B_ACROSS) \
    ENTRY_HELD(matmul_f64_##ROWS##x##COLUMNS##_##a##b, \
               (matmul_f64_shape<ROWS, COLUMNS, DOWN, RIGHT, GROUPS>::THREADS), HELD, matmul_params) { \
        matmul_f64<ROWS, COLUMNS, DOWN, RIGHT, GROUPS, STAGES, A_ACROSS, B_ACROSS>(p); \
    }
#define F64_ALL(ROWS, COLUMNS, DOWN, RIGHT, GROUPS, STAGES, HELD, ...) \
    F64(ROWS, COLUMNS, DOWN, RIGHT, GROUPS, STAGES, HELD, k, k, false, false) \
    F64(ROWS, COLUMNS, DOWN, RIGHT, GROUPS, STAGES, HELD, k, l, false, true) \
    F64(ROWS, COLUMNS, DOWN, RIGHT, GROUPS, STAGES, HELD, l, k, true, false) \
    F64(ROWS, COLUMNS, DOWN, RIGHT, GROUPS, STAGES, HELD, l, l, true, true)
MATMUL_F64_TILES(F64_ALL)

#include "backends/simt/matmul/matmul_same.inl.h"
