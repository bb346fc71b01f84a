/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on devices: the host side. */
#include "norm_launch.h"

SIMT_KERNELS(layer_norm_backward) = { NORM_BACKWARD_KERNELS(norm_backward_layer), { 0 } };
