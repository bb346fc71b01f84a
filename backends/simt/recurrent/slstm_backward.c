/* SPDX-License-Identifier: Apache-2.0 */
/* slstm_backward on devices: the host side. */
#include "slstm_backward_host.h"

SIMT_KERNELS(slstm_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                 { 0 } };
