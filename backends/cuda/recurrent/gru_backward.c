/* SPDX-License-Identifier: Apache-2.0 */
/* gru_backward on CUDA devices: the host side. */
#include "backends/simt/recurrent/gru_backward_host.h"
#include "backward_wide_host.h"

SIMT_KERNELS(gru_backward) = { CELL_WIDE_KERNEL,
                               { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                               { 0 } };
