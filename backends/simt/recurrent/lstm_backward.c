/* SPDX-License-Identifier: Apache-2.0 */
/* lstm_backward on devices: the host side. */
#include "lstm_backward_host.h"

SIMT_KERNELS(lstm_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                { 0 } };
