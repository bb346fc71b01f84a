/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on CUDA devices. */
#include "backends/simt/layer_norm.inl.h"
#include "norm_ring.h"

NORM_RING(layer_norm, true, f32, 4, 2)
NORM_RING(layer_norm, true, f32, 8, 1)
NORM_RING(layer_norm, true, bf16, 4, 2)
NORM_RING(layer_norm, true, bf16, 8, 1)
NORM_RING(layer_norm, true, f16, 4, 2)
NORM_RING(layer_norm, true, f16, 8, 1)
