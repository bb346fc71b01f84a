/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on devices: a block has a tile of positions and channels, a thread 4 x 4 sums; or of few channels of a group a
 * thread has one sum.
 *
 * NOTES. Floor: patches once for each tile of channels, weights once for each tile of positions. Products are made in
 * f32 whatever the type, but of f64. */
#include "conv.inl.h"

ENTRY(conv2d_few_f32, SIMT_THREADS, conv_params) { conv_few<f32>(p); }
ENTRY(conv2d_few_bf16, SIMT_THREADS, conv_params) { conv_few<bf16>(p); }
ENTRY(conv2d_few_f16, SIMT_THREADS, conv_params) { conv_few<f16>(p); }
ENTRY(conv2d_few_f64, SIMT_THREADS, conv_params) { conv_few<f64>(p); }
ENTRY(conv2d_f32, SIMT_THREADS, conv_params) { conv_tiles<f32, false>(p); }
ENTRY(conv2d_bf16, SIMT_THREADS, conv_params) { conv_tiles<bf16, false>(p); }
ENTRY(conv2d_f16, SIMT_THREADS, conv_params) { conv_tiles<f16, false>(p); }
ENTRY(conv2d_f64, SIMT_THREADS, conv_params) { conv_tiles<f64, false>(p); }
