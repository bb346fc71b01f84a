/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d_backward on devices: the host side. */
#include "conv2d_backward_host.h"

SIMT_KERNELS(conv2d_backward) = { BACKWARD_DEPTHWISE, BACKWARD_TILES, { 0 } };
