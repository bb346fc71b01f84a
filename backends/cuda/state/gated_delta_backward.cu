/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta_backward on CUDA devices: bf16 and f16 in chunks by the tensor cores of sm_80 and later, and all types
 * step by step. */
#include "backends/simt/state/gated_delta_backward.inl.h"

#include "state_back_chunk.h"
#include "state_back_ready.h"

#define MMA(T, D, prefix, ruled) \
    ENTRY_HELD(gated_delta_backward_##prefix##ready_##T##_##D, STATE_MMA_READY_THREADS, 4, state_back_params) { \
        state_back_ready<T, D, ruled>(p); \
    } \
    ENTRY_HELD(gated_delta_backward_##prefix##pass_##T##_##D, STATE_MMA_THREADS, STATE_BACK_HELD(ruled), \
               state_back_params) { \
        state_back_pass<T, D, ruled>(p); \
    } \
    ENTRY_HELD(gated_delta_backward_##prefix##chunk_##T##_##D, STATE_BACK_CHUNK_THREADS, 1, state_back_params) { \
        state_back_chunk<T, D, ruled>(p); \
    }
MMA(bf16, 64, , false)
MMA(bf16, 128, , false)
MMA(f16, 64, , false)
MMA(f16, 128, , false)
MMA(bf16, 64, ruled_, true)
MMA(bf16, 128, ruled_, true)
MMA(f16, 64, ruled_, true)
MMA(f16, 128, ruled_, true)
ENTRY(gated_delta_backward_alone_4, STATE_BACK_THREADS, state_back_params) { state_back_alone<4>(p); }
ENTRY(gated_delta_backward_alone_8, STATE_BACK_THREADS, state_back_params) { state_back_alone<8>(p); }
