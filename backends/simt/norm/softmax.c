/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on devices: the host side. */
#include "softmax_launch.h"

SIMT_KERNELS(softmax) = { { .name = SIMT_NAME, .launch = softmax_launch_rows, .edges = softmax_edges_rows },
                          SOFTMAX_SAME_KERNEL,
                          { 0 } };
