/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on CUDA devices. */
#include "backends/simt/layer_norm_backward.inl.h"
#include "norm_backward_ring.h"

NORM_BACKWARD_RINGS(layer_norm_backward, true)
NORM_BACKWARD_DEEP(layer_norm_backward, f32)
NORM_BACKWARD_DEEP(layer_norm_backward, bf16)
NORM_BACKWARD_DEEP(layer_norm_backward, f16)
