/* SPDX-License-Identifier: Apache-2.0 */
/* slstm on CUDA devices: the host side. */
#include "backends/simt/recurrent/slstm_host.h"
#include "forward_wide_host.h"

SIMT_KERNELS(slstm) = { CELL_WIDE_KERNEL,
                        { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                        { 0 } };
