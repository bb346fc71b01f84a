/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices: the host side. */
#include "norm_launch.h"

SIMT_KERNELS(rms_norm) = {
    { .name = SIMT_NAME, .launch = norm_launch_rows, .edges = norm_edges_rows, .self = &norm_rms },
    NORM_SAME_KERNEL(norm_rms),
    { 0 }
};
