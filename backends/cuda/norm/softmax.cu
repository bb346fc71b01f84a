/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on CUDA devices. */
#include "softmax_parts.h"

#define SHAPE(G, HELD) \
    ROW_PART_SHAPE(softmax, softmax_params, softmax_parts, f32, G, HELD) \
    ROW_PART_SHAPE(softmax, softmax_params, softmax_parts, bf16, G, HELD) \
    ROW_PART_SHAPE(softmax, softmax_params, softmax_parts, f16, G, HELD)
SIMT_PART_SHAPES(SHAPE)
