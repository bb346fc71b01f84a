/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on CUDA devices. */
#include "softmax_ring.h"

#define SOFTMAX_RING(T, G) \
    ENTRY(softmax_ring_##T##_##G, G, softmax_params) { softmax_ring<T, G>(p); }
#define SOFTMAX_RINGS(T) SOFTMAX_RING(T, 512) SOFTMAX_RING(T, 1024)
SOFTMAX_RINGS(f32)
SOFTMAX_RINGS(bf16)
SOFTMAX_RINGS(f16)
