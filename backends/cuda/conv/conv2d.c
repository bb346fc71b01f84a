/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on CUDA devices: the host side. */
#include "backends/simt/conv/conv2d_host.h"
#include "conv2d_sm90_host.h"
#include "conv_mma_host.h"
#include "conv_sm90_host.h"

CONV_FORWARD_MMA_OF(CONV2D)

#define SM90(text, tile, slices) \
    { .name = SIMT_NAME "_sm90" text, \
      .refuse = conv2d_sm90_refuse, \
      .workspace = conv2d_sm90_workspace, \
      .launch = conv2d_sm90_launch, \
      .self = &(const conv_sm90_choice){ tile, slices }, \
      .edges = conv2d_sm90_edges }

SIMT_KERNELS(conv2d) = {
    CONV_FORWARD_DEPTHWISE, SM90("", 0, 0), CONV_FORWARD_MMA("", 0, 0), CONV_FORWARD_TILES, CONV_FORWARD_MMA_EACH,
    CONV_SM90_EACH(SM90),   { 0 }
};
