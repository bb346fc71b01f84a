/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks on CUDA devices: bf16 and f16 by the tensor cores of sm_80 and later, and all types without. */
#include "backends/simt/attention_blocks/attention_blocks.inl.h"

#include "attention_blocks_mma.h"

#define MMA(T, D) \
    ENTRY_HELD(attention_blocks_mma_##T##_##D, LISTS_MMA_THREADS, 2, lists_params) { attention_blocks_mma<T, D>(p); }
MMA(bf16, 64)
MMA(bf16, 128)
MMA(bf16, 256)
MMA(f16, 64)
MMA(f16, 128)
MMA(f16, 256)
