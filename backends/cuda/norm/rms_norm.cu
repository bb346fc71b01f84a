/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on CUDA devices. */
#include "backends/simt/norm/rms_norm.inl.h"
#include "norm_parts.h"

#define SHAPE(G, HELD) NORM_PART_SHAPE(rms_norm, G, HELD)
SIMT_LONG_SHAPES(SHAPE)
NORM_FULLS(rms_norm, false)
#define DROP(G, HELD) NORM_DROP(rms_norm, false, bf16, G, HELD) NORM_DROP(rms_norm, false, f16, G, HELD)
SIMT_MIDDLE_SHAPES(DROP)
NORM_FITS_SHORT(rms_norm, f32, 896, 768)
NORM_FITS(rms_norm, bf16, 1024, 896)
NORM_FITS(rms_norm, f16, 896, 768)
