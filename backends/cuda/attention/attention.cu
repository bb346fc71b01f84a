/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CUDA devices: by the tensor cores of sm_80, and without any. */
#include "attention_decode.h"
#include "attention_mma.h"
#include "attention_simt.h"

#define SIMT(T, D) \
    ENTRY(attention_simt_##T##_##D, ATTENTION_THREADS, attention_params) { attention_simt<T, D, false>(p); }
#define SIMT_OPTIONS(T) \
    ENTRY(attention_simt_options_##T##_128, ATTENTION_THREADS, attention_params) { attention_simt<T, 128, true>(p); }
SIMT(f32, 64)
SIMT(f32, 128)
SIMT(bf16, 64)
SIMT(bf16, 128)
SIMT(f16, 64)
SIMT(f16, 128)
SIMT_OPTIONS(f32)
SIMT_OPTIONS(bf16)
SIMT_OPTIONS(f16)

#define MMA(T, D, KEYS, R, STAGES) \
    ENTRY_HELD(attention_mma_##T##_##D, ATTENTION_MMA_THREADS, 2, attention_params) { \
        attention_mma<T, D, KEYS, R, STAGES, false>(p); \
    } \
    ENTRY_HELD(attention_mma_bent_##T##_##D, ATTENTION_MMA_THREADS, 2, attention_params) { \
        attention_mma<T, D, KEYS, R, STAGES, true>(p); \
    }
#define MMA_BF16(D, KEYS, R, STAGES) MMA(bf16, D, KEYS, R, STAGES)
#define MMA_F16(D, KEYS, R, STAGES) MMA(f16, D, KEYS, R, STAGES)
ATTENTION_MMA_TILES(MMA_BF16)
ATTENTION_MMA_TILES(MMA_F16)

#define OPTIONS(T, D, KEYS, R, STAGES) \
    ENTRY_HELD(attention_mma_options_##T##_##D, ATTENTION_MMA_THREADS, 2, attention_params) { \
        attention_mma<T, D, KEYS, R, STAGES, false, true>(p); \
    }
#define OPTIONS_BF16(D, KEYS, R, STAGES) OPTIONS(bf16, D, KEYS, R, STAGES)
#define OPTIONS_F16(D, KEYS, R, STAGES) OPTIONS(f16, D, KEYS, R, STAGES)
ATTENTION_MMA_OPTIONS_TILES(OPTIONS_BF16)
ATTENTION_MMA_OPTIONS_TILES(OPTIONS_F16)

#define DECODE(T, D, KEYS) \
    ENTRY_HELD(attention_decode_##T##_##D, ATTENTION_DECODE_THREADS, 2, attention_decode_params) { \
        attention_decode<T, D, KEYS>(p); \
    } \
    ENTRY(attention_decode_end_##T##_##D, ATTENTION_DECODE_THREADS, attention_decode_params) { \
        attention_decode_end<T, D>(p); \
    }
#define DECODE_BF16(D, KEYS) DECODE(bf16, D, KEYS)
#define DECODE_F16(D, KEYS) DECODE(f16, D, KEYS)
ATTENTION_DECODE_TILES(DECODE_BF16)
ATTENTION_DECODE_TILES(DECODE_F16)

#include "backends/simt/attention/attention_same.inl.h"
