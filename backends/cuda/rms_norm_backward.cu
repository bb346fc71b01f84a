/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on CUDA devices. */
#include "backends/simt/rms_norm_backward.inl.h"
#include "norm_backward_ring.h"

NORM_BACKWARD_RINGS(rms_norm_backward, false)
