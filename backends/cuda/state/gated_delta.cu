/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta on CUDA devices: bf16 and f16 in chunks by the tensor cores of sm_80 and later, and all types step by
 * step. */
#include "backends/simt/state/gated_delta.inl.h"

#include "state_mma.h"

#define MMA(T, D) \
    ENTRY_HELD(gated_delta_mma_##T##_##D, STATE_MMA_THREADS, 2, state_mma_params) { state_mma<T, D, false>(p); } \
    ENTRY_HELD(gated_delta_ready_##T##_##D, STATE_MMA_READY_THREADS, 2, state_mma_params) { \
        state_mma_ready<T, D>(p); \
    } \
    ENTRY_HELD(gated_delta_ruled_##T##_##D, STATE_MMA_THREADS, 1, state_mma_params) { state_mma<T, D, true>(p); }
MMA(bf16, 64)
MMA(bf16, 128)
MMA(f16, 64)
MMA(f16, 128)
