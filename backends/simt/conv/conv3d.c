/* SPDX-License-Identifier: Apache-2.0 */
/* conv3d on devices: the host side. */
#include "conv3d_host.h"

SIMT_KERNELS(conv3d) = { CONV_FORWARD_DEPTHWISE, CONV_FORWARD_TILES, { 0 } };
