/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CUDA devices: by the tensor cores of sm_80, and without any. */
#include "attention_backward_mma.h"
#include "attention_backward_simt.h"

#define DELTA(T) \
    ENTRY(attention_backward_delta_##T, ATTENTION_THREADS, attention_backward_params) { attention_delta<T>(p); }
#define SIMT(T, D) \
    ENTRY(attention_backward_queries_##T##_##D, ATTENTION_THREADS, attention_backward_params) { attention_queries<T, D>(p); } \
    ENTRY(attention_backward_keys_##T##_##D, ATTENTION_THREADS, attention_backward_params) { attention_keys<T, D>(p); }
#define ALL(T) DELTA(T) SIMT(T, 64) SIMT(T, 128)
ALL(f32)
ALL(bf16)
ALL(f16)

/* d, keys and queries of a tile that is copied, and columns of dk and dv in a block. */
#define MMA(T, D, KEYS, QUERIES, COLUMNS) \
    ENTRY(attention_backward_mma_queries_##T##_##D, ATTENTION_MMA_THREADS, attention_backward_params) { attention_mma_queries<T, D, KEYS>(p); } \
    ENTRY(attention_backward_mma_keys_##T##_##D, ATTENTION_MMA_THREADS, attention_backward_params) { attention_mma_keys<T, D, QUERIES, COLUMNS>(p); }
#define MMA_ALL(T) MMA(T, 64, 64, 64, 64) MMA(T, 128, 64, 32, 128) MMA(T, 256, 32, 32, 128)
MMA_ALL(bf16)
MMA_ALL(f16)
