/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy on CUDA devices. */
#include "backends/simt/loss/cross_entropy.inl.h"
#include "cross_entropy_parts.h"

#define SHAPE(G, HELD) \
    ROW_PART_SHAPE(cross_entropy, cross_entropy_params, cross_entropy_parts, f32, G, HELD) \
    ROW_PART_SHAPE(cross_entropy_narrow, cross_entropy_params, cross_entropy_narrow_parts, f32, G, HELD) \
    ROW_PART_SHAPE(cross_entropy, cross_entropy_params, cross_entropy_parts, bf16, G, HELD) \
    ROW_PART_SHAPE(cross_entropy, cross_entropy_params, cross_entropy_parts, f16, G, HELD)
SIMT_PART_SHAPES(SHAPE)
