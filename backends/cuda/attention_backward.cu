/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CUDA devices: without tensor cores. */
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
