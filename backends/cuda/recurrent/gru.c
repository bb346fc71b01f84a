/* SPDX-License-Identifier: Apache-2.0 */
/* gru on CUDA devices: the host side. */
#include "backends/simt/recurrent/gru_host.h"
#include "forward_wide_host.h"

SIMT_KERNELS(gru) = { CELL_WIDE_KERNEL,
                      { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                      { 0 } };
