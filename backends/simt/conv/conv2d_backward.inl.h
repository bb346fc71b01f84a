/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward on devices. The gradient by x is a convolution of dy, a tile of positions of one residue by the
 * strides; that by weights a product over positions.
 *
 * NOTES. Floor: as of conv2d; and for weights, dy once for each tile of elements and x once for each tile of
 * channels. */
#include "gradient.inl.h"

GRADIENT_ENTRIES(f32, gradient_dx, gradient_tiles)
GRADIENT_ENTRIES(bf16, gradient_dx, gradient_tiles)
GRADIENT_ENTRIES(f16, gradient_dx, gradient_tiles)
GRADIENT_ENTRIES(f64, gradient_dx, gradient_tiles)
