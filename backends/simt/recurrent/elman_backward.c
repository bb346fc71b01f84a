/* SPDX-License-Identifier: Apache-2.0 */
/* elman_backward on devices: the host side. */
#include "elman_backward_host.h"

SIMT_KERNELS(elman_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                 { 0 } };
