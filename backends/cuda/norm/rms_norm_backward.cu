/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on CUDA devices. */
#include "backends/simt/norm/rms_norm_backward.inl.h"
#include "norm_backward_ring.h"

NORM_BACKWARD_RINGS(rms_norm_backward, false)
NORM_BACKWARD_FITS(rms_norm_backward, false, bf16)
NORM_BACKWARD_FITS(rms_norm_backward, false, f16)
