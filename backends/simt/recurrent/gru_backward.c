/* SPDX-License-Identifier: Apache-2.0 */
/* gru_backward on devices: the host side. */
#include "gru_backward_host.h"

SIMT_KERNELS(gru_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
