/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward on devices. The gradient by x is a convolution of dy, a tile of positions of one residue by the
 * strides; that by weights a product over positions.
 *
 * NOTES. Floor: as of conv2d; and for weights, dy once for each tile of elements and x once for each tile of
 * channels. */
#include "gradient.inl.h"

ENTRY(conv2d_backward_dx_f32, SIMT_THREADS, conv_params) { conv_tiles<f32, true>(p); }
ENTRY(conv2d_backward_dx_bf16, SIMT_THREADS, conv_params) { conv_tiles<bf16, true>(p); }
ENTRY(conv2d_backward_dx_f16, SIMT_THREADS, conv_params) { conv_tiles<f16, true>(p); }
ENTRY(conv2d_backward_dx_f64, SIMT_THREADS, conv_params) { conv_tiles<f64, true>(p); }
GRADIENT_ENTRIES(f32)
GRADIENT_ENTRIES(bf16)
GRADIENT_ENTRIES(f16)
GRADIENT_ENTRIES(f64)
