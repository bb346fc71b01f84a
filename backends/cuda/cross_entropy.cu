/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on CUDA devices. */
#include "backends/simt/cross_entropy.inl.h"
#include "cross_entropy_parts.h"

#define CROSS_ENTROPY_WHOLE(T, HELD) \
    ENTRY_HELD(cross_entropy_shared_##T##_##HELD, CROSS_ENTROPY_THREADS, HELD, cross_entropy_parts_params) { cross_entropy_parts<T, true, one_block>(p); } \
    ENTRY_HELD(cross_entropy_shared_ragged_##T##_##HELD, CROSS_ENTROPY_THREADS, HELD, cross_entropy_parts_params) { \
        cross_entropy_parts<T, false, one_block>(p); \
    }
#define CROSS_ENTROPY_SHARED(T) CROSS_ENTROPY_WHOLE(T, 2) CROSS_ENTROPY_WHOLE(T, 3)
CROSS_ENTROPY_SHARED(f32)
CROSS_ENTROPY_SHARED(bf16)
CROSS_ENTROPY_SHARED(f16)
