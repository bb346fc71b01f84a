/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on devices: the host side. */
#include "softmax_launch.h"

SIMT_KERNELS(softmax_backward) = {
    { .name = SIMT_NAME, .launch = softmax_backward_launch_rows, .edges = softmax_backward_edges_rows }, { 0 }
};
