/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d on devices: the host side. */
#include "conv2d_host.h"

SIMT_KERNELS(conv2d) = { CONV_FORWARD_DEPTHWISE, CONV_FORWARD_TILES, { 0 } };
