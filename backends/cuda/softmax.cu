/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on CUDA devices. */
#include "softmax_ring.h"

#define SOFTMAX_RING(T) \
    ENTRY_HELD(softmax_ring_##T##_8, SIMT_RING_THREADS, 1, softmax_params) { softmax_ring<T, 8>(p); }
SOFTMAX_RING(f32)
SOFTMAX_RING(bf16)
SOFTMAX_RING(f16)
