/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CUDA devices: by the tensor cores of sm_80, and without any. */
#include "attention_backward_mma.h"
#include "attention_backward_simt.h"

#define DELTA(T) \
    ENTRY(attention_backward_delta_##T, ATTENTION_THREADS, attention_backward_params) { attention_delta<T>(p); }
#define SIMT(T, D) \
    ENTRY(attention_backward_queries_##T##_##D, ATTENTION_THREADS, attention_backward_params) { \
        attention_queries<T, D>(p); \
    } \
    ENTRY(attention_backward_keys_##T##_##D, ATTENTION_THREADS, attention_backward_params) { attention_keys<T, D>(p); }
#define ALL(T) DELTA(T) SIMT(T, 64) SIMT(T, 128)
ALL(f32)
ALL(bf16)
ALL(f16)

#define MMA(T, name, D, KEYS, QUERIES, STAGES, WARPS) \
    ENTRY(attention_backward_##name##_begin_##T##_##D, ATTENTION_BACKWARD_ENDS, attention_backward_mma_params) { \
        attention_gradient_begin<T, D, QUERIES>(p); \
    } \
    ENTRY_HELD(attention_backward_##name##_##T##_##D, 32 * WARPS, 1, attention_backward_mma_params) { \
        attention_mma_gradient<attention_gradient_shape<T, D, KEYS, QUERIES, STAGES, WARPS>>(p); \
    } \
    ENTRY_HELD(attention_backward_##name##_end_##T##_##D, ATTENTION_BACKWARD_ENDS, 2, attention_backward_mma_params) { \
        attention_mma_gradient_end<T, D, KEYS, QUERIES>(p); \
    }
#define MMA_BF16(name, D, KEYS, QUERIES, STAGES, WARPS) MMA(bf16, name, D, KEYS, QUERIES, STAGES, WARPS)
#define MMA_F16(name, D, KEYS, QUERIES, STAGES, WARPS) MMA(f16, name, D, KEYS, QUERIES, STAGES, WARPS)
ATTENTION_BACKWARD_MMA_TILES(MMA_BF16)
ATTENTION_BACKWARD_MMA_TILES(MMA_F16)
ATTENTION_BACKWARD_SLIM_TILES(MMA_BF16)
ATTENTION_BACKWARD_SLIM_TILES(MMA_F16)
