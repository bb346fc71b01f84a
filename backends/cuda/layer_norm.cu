/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on CUDA devices. */
#include "backends/simt/layer_norm.inl.h"
#include "norm_ring.h"

NORM_RING_ENTRIES(layer_norm, true)
