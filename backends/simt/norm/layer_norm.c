/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on devices: the host side. */
#include "norm_launch.h"

SIMT_KERNELS(layer_norm) = {
    { .name = SIMT_NAME, .launch = norm_launch_rows, .edges = norm_edges_rows, .self = &norm_layer },
    NORM_SAME_KERNEL(norm_layer),
    { 0 }
};
