/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CUDA devices: by the tensor cores of sm_80, and without any. */
#include "attention_backward_mma.h"
#include "attention_backward_simt.h"

#define DELTA(T) \
    ENTRY(attention_backward_delta_##T, ATTENTION_THREADS, attention_backward_params) { attention_delta<T>(p); } \
    ENTRY(attention_backward_clear_bias_##T, ATTENTION_THREADS, attention_backward_params) { \
        attention_clear_bias<T>(p); \
    } \
    ENTRY(attention_backward_sinks_##T, ATTENTION_THREADS, attention_backward_params) { attention_sum_sinks<T>(p); }
#define STEPS(T, D, text, OPTIONS) \
    ENTRY(attention_backward_queries_##text##T##_##D, ATTENTION_THREADS, attention_backward_params) { \
        attention_queries<T, D, OPTIONS>(p); \
    } \
    ENTRY(attention_backward_keys_##text##T##_##D, ATTENTION_THREADS, attention_backward_params) { \
        attention_keys<T, D, OPTIONS>(p); \
    }
#define ALL(T) DELTA(T) STEPS(T, 64, , false) STEPS(T, 128, , false) STEPS(T, 128, options_, true)
ALL(f32)
ALL(bf16)
ALL(f16)

/* `options`: does the launch after, which does rows again, know of them? */
#define MMA(T, name, D, KEYS, QUERIES, STAGES, WARPS, options) \
    ENTRY(attention_backward_##name##_begin_##T##_##D, ATTENTION_BACKWARD_ENDS, attention_backward_mma_params) { \
        attention_gradient_begin<T, D, QUERIES>(p); \
    } \
    ENTRY_HELD(attention_backward_##name##_##T##_##D, 32 * WARPS, 1, attention_backward_mma_params) { \
        attention_mma_gradient<attention_gradient_shape<T, D, KEYS, QUERIES, STAGES, WARPS>>(p); \
    } \
    ENTRY_HELD(attention_backward_##name##_end_##T##_##D, ATTENTION_BACKWARD_ENDS, 2, attention_backward_mma_params) { \
        attention_mma_gradient_end<T, D, KEYS, QUERIES, options>(p); \
    }
#define MMA_BF16(...) MMA(bf16, __VA_ARGS__, false)
#define MMA_F16(...) MMA(f16, __VA_ARGS__, false)
ATTENTION_BACKWARD_MMA_TILES(MMA_BF16)
ATTENTION_BACKWARD_MMA_TILES(MMA_F16)

#define SLIM(T, name, D, KEYS, QUERIES, STAGES, WARPS) \
    MMA(T, name, D, KEYS, QUERIES, STAGES, WARPS, true) \
    ENTRY_HELD(attention_backward_##name##_options_##T##_##D, 32 * WARPS, 1, attention_backward_mma_params) { \
        attention_mma_gradient<attention_gradient_shape<T, D, KEYS, QUERIES, STAGES, WARPS>, true>(p); \
    }
#define SLIM_BF16(...) SLIM(bf16, __VA_ARGS__)
#define SLIM_F16(...) SLIM(f16, __VA_ARGS__)
ATTENTION_BACKWARD_SLIM_TILES(SLIM_BF16)
ATTENTION_BACKWARD_SLIM_TILES(SLIM_F16)
