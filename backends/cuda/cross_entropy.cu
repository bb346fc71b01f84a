/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on CUDA devices. */
#include "backends/simt/cross_entropy.inl.h"
#include "cross_entropy_parts.h"

#define SHAPE(G, HELD) \
    CROSS_ENTROPY_PARTS(shared, one_block, f32, G, HELD) \
    CROSS_ENTROPY_PARTS(shared, one_block, bf16, G, HELD) \
    CROSS_ENTROPY_PARTS(shared, one_block, f16, G, HELD)
CROSS_ENTROPY_SHAPES(SHAPE)
