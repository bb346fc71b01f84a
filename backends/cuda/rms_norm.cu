/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on CUDA devices. */
#include "backends/simt/rms_norm.inl.h"
#include "norm_ring.h"

NORM_RING_ENTRIES(rms_norm, false)
