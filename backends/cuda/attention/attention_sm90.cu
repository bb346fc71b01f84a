/* SPDX-License-Identifier: Apache-2.0 */
/* attention on sm_90a. */
#include "attention_sm90.inl.h"

#define KERNEL(T, name, D, KEYS, GROUPS, STAGES, BENT) \
    ENTRY_HELD(attention_sm90_##name##T##_##D, (GROUPS + 1) * WARPGROUP, 1, attention_sm90_params) { \
        attention_persistent<attention_pipe<T, D, KEYS, GROUPS, STAGES>, BENT>(p); \
    }
#define TILES(D, KEYS, GROUPS, STAGES) \
    KERNEL(bf16, , D, KEYS, GROUPS, STAGES, false) KERNEL(f16, , D, KEYS, GROUPS, STAGES, false)
ATTENTION_SM90_TILES(TILES)
#define SHORT_TILES(D, KEYS, GROUPS, STAGES) \
    KERNEL(bf16, short_, D, KEYS, GROUPS, STAGES, false) KERNEL(f16, short_, D, KEYS, GROUPS, STAGES, false)
ATTENTION_SM90_SHORT_TILES(SHORT_TILES)
#define BENT_TILES(D, KEYS, GROUPS, STAGES) \
    KERNEL(bf16, bent_, D, KEYS, GROUPS, STAGES, true) KERNEL(f16, bent_, D, KEYS, GROUPS, STAGES, true)
ATTENTION_SM90_BENT_TILES(BENT_TILES)
