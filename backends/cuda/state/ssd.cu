/* SPDX-License-Identifier: Apache-2.0 */
/* ssd on CUDA devices: bf16 and f16 in chunks by the tensor cores of sm_80 and later, and all types step by step. */
#include "backends/simt/state/ssd.inl.h"

#include "state_mma.h"

#define MMA(T, D) \
    ENTRY_HELD(ssd_mma_##T##_##D, STATE_MMA_THREADS, 2, state_mma_params) { state_mma<T, D, false>(p); }
MMA(bf16, 64)
MMA(bf16, 128)
MMA(f16, 64)
MMA(f16, 128)
