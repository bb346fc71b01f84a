/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CUDA devices: by the tensor cores of sm_80, and without any. */
#include "attention_mma.h"
#include "attention_simt.h"

#define SIMT(T, D) \
    ENTRY(attention_simt_##T##_##D, ATTENTION_THREADS, attention_params) { attention_simt<T, D>(p); }
SIMT(f32, 64)
SIMT(f32, 128)
SIMT(bf16, 64)
SIMT(bf16, 128)
SIMT(f16, 64)
SIMT(f16, 128)

/* d, keys of a tile that is copied, and matrices of 16 queries in a warp. */
#define MMA(T, D, KEYS, R) \
    ENTRY_HELD(attention_mma_##T##_##D, ATTENTION_MMA_THREADS, 2, attention_params) { attention_mma<T, D, KEYS, R>(p); }
#define MMA_ALL(T) MMA(T, 64, 64, 2) MMA(T, 128, 64, 2) MMA(T, 256, 64, 1)
MMA_ALL(bf16)
MMA_ALL(f16)
