/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on CUDA devices. */
#include "backends/simt/rms_norm.inl.h"
#include "norm_ring.h"

NORM_RING(rms_norm, false, f32, 8, 1)
NORM_RING(rms_norm, false, bf16, 8, 1)
NORM_RING(rms_norm, false, f16, 8, 1)
