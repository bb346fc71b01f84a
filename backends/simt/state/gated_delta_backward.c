/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta_backward on devices: the host side. */
#include "gated_delta_backward_host.h"

SIMT_KERNELS(gated_delta_backward) = { { .name = SIMT_NAME,
                                         .workspace = gated_delta_backward_workspace,
                                         .launch = gated_delta_backward_launch,
                                         .edges = gated_delta_backward_edges },
                                       { 0 } };
