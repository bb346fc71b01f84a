/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on CUDA devices: the host side. */
#include "backends/simt/conv/conv2d_host.h"
#include "conv_mma_host.h"

CONV_FORWARD_MMA_OF(CONV2D)

SIMT_KERNELS(conv2d) = {
    CONV_FORWARD_DEPTHWISE, CONV_FORWARD_MMA("", 0, 0), CONV_FORWARD_TILES, CONV_FORWARD_MMA_EACH, { 0 }
};
