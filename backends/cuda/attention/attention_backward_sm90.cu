/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on sm_90a. */
#include "attention_backward_sm90.inl.h"

#define KERNEL(T, name, D, QUERIES, BENT) \
    ENTRY_HELD(attention_backward_sm90_##name##T##_##D, ATTENTION_BACKWARD_THREADS, 1, \
               attention_backward_sm90_params) { \
        attention_gradient<attention_gradient_pipe<T, D, QUERIES>, BENT>(p); \
    }
#define ENDS(T, D, QUERIES) \
    ENTRY(attention_backward_sm90_begin_##T##_##D, ATTENTION_BACKWARD_ENDS, attention_backward_sm90_params) { \
        attention_gradient_begin<T, D, QUERIES>(p); \
    } \
    ENTRY_HELD(attention_backward_sm90_end_##T##_##D, ATTENTION_BACKWARD_ENDS, D == 64 ? 2 : 1, \
               attention_backward_sm90_params) { \
        attention_gradient_end<T, D, QUERIES>(p); \
    }
#define TILES(D, QUERIES) \
    KERNEL(bf16, , D, QUERIES, false) \
    KERNEL(f16, , D, QUERIES, false) \
    KERNEL(bf16, bent_, D, QUERIES, true) \
    KERNEL(f16, bent_, D, QUERIES, true) \
    ENDS(bf16, D, QUERIES) \
    ENDS(f16, D, QUERIES)
ATTENTION_BACKWARD_SM90_TILES(TILES)
