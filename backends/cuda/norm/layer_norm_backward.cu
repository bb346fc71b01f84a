/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on CUDA devices. */
#include "backends/simt/norm/layer_norm_backward.inl.h"
#include "norm_backward_ring.h"

NORM_BACKWARD_RINGS(layer_norm_backward, true)
NORM_BACKWARD_FITS(layer_norm_backward, true, bf16)
NORM_BACKWARD_FITS(layer_norm_backward, true, f16)
