/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on CUDA devices. */
#include "backends/simt/norm/layer_norm.inl.h"
#include "norm_parts.h"

#define SHAPE(G, HELD) NORM_PART_SHAPE(layer_norm, G, HELD)
SIMT_LONG_SHAPES(SHAPE)
NORM_FULLS(layer_norm, true)
#define DROP(G, HELD) NORM_DROP(layer_norm, true, bf16, G, HELD) NORM_DROP(layer_norm, true, f16, G, HELD)
SIMT_MIDDLE_SHAPES(DROP)
NORM_FITS_SHORT(layer_norm, f32, 896, 768)
NORM_FITS(layer_norm, bf16, 1024, 896)
NORM_FITS(layer_norm, f16, 896, 768)
