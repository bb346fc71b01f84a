/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on CUDA devices. */
#include "softmax_backward_ring.h"

#define SOFTMAX_BACKWARD_RING(T) \
    ENTRY_ASKING(softmax_backward_ring_##T##_2048, SIMT_RING_THREADS, 1, softmax_backward_params) { \
        if (p.ring.whole) \
            softmax_backward_ring<T, 4, true>(p); \
        else \
            softmax_backward_ring<T, 4, false>(p); \
    }
SOFTMAX_BACKWARD_RING(f32)
SOFTMAX_BACKWARD_RING(bf16)
SOFTMAX_BACKWARD_RING(f16)
