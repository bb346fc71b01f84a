/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on devices: a block has a tile of positions and channels, a thread 4 x 4 sums; or of few channels of a group a
 * thread has one sum, or where each channel is a group a few neighbours' sums of 16 bytes of channels.
 *
 * NOTES. Floor: patches once for each tile of channels, weights once for each tile of positions. Products are made in
 * f32 whatever the type, but of f64. */
#include "depthwise.inl.h"

CONV_ENTRIES(conv2d, f32, conv_tiles<f32, false>)
CONV_ENTRIES(conv2d, bf16, conv_tiles<bf16, false>)
CONV_ENTRIES(conv2d, f16, conv_tiles<f16, false>)
CONV_ENTRIES(conv2d, f64, conv_tiles<f64, false>)
