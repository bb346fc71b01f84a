/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode on CUDA devices: by the tensor cores of sm_80, and without any. */
#include "backends/simt/attention/attention_decode.inl.h"

#include "attention_pages.h"
#include "attention_pages_tile.h"

#define PAGES(T, C, D, KEYS) \
    ENTRY_HELD(attention_decode_pages_##T##_##C##_##D, ATTENTION_PAGES_THREADS, 2, decode_params) { \
        attention_pages<T, C, D, KEYS>(p); \
    }
#define PAGES_OF(D, KEYS) \
    PAGES(bf16, bf16, D, KEYS) \
    PAGES(bf16, e4m3, D, KEYS) \
    PAGES(bf16, i8, D, KEYS) PAGES(f16, f16, D, KEYS) PAGES(f16, e4m3, D, KEYS) PAGES(f16, i8, D, KEYS)
ATTENTION_PAGES_TILES(PAGES_OF)

#define SIDE(T, D, DV, C, KEYS, STAGES) \
    ENTRY(attention_decode_side_##T##_##D, 128 * C, decode_params) { \
        attention_pages_tile<T, D, DV, C, KEYS, STAGES>(p); \
    }
#define SIDES_OF(D, DV, C, KEYS, STAGES) SIDE(bf16, D, DV, C, KEYS, STAGES) SIDE(f16, D, DV, C, KEYS, STAGES)
ATTENTION_PAGES_SIDES(SIDES_OF)
