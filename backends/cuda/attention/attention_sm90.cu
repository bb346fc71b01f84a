/* SPDX-License-Identifier: Apache-2.0 */
/* attention on sm_90a. */
#include "attention_sm90.inl.h"

#define KERNEL(T, name, D, QUERIES, KEYS, STAGES, HELD, BENT) \
    ENTRY_HELD(attention_sm90_##name##T##_##D##_##QUERIES##x##KEYS, ((QUERIES) / 64 + 1) * WARPGROUP, HELD, \
               attention_sm90_params) { \
        attention_persistent<attention_pipe<T, D, QUERIES, KEYS, STAGES>, HELD, BENT>(p); \
    }
#define TILES(D, QUERIES, KEYS, STAGES, HELD, ...) \
    KERNEL(bf16, , D, QUERIES, KEYS, STAGES, HELD, false) KERNEL(f16, , D, QUERIES, KEYS, STAGES, HELD, false)
ATTENTION_SM90_TILES(TILES)
#define BENT_TILES(D, QUERIES, KEYS, STAGES, HELD, ...) \
    KERNEL(bf16, bent_, D, QUERIES, KEYS, STAGES, HELD, true) KERNEL(f16, bent_, D, QUERIES, KEYS, STAGES, HELD, true)
ATTENTION_SM90_BENT_TILES(BENT_TILES)
