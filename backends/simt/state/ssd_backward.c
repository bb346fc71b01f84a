/* SPDX-License-Identifier: Apache-2.0 */
/* ssd_backward on devices: the host side. */
#include "ssd_backward_host.h"

SIMT_KERNELS(ssd_backward) = { { .name = SIMT_NAME,
                                 .workspace = ssd_backward_workspace,
                                 .launch = ssd_backward_launch,
                                 .edges = ssd_backward_edges },
                               { 0 } };
