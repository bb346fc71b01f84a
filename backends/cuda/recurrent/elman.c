/* SPDX-License-Identifier: Apache-2.0 */
/* elman on CUDA devices: the host side. */
#include "backends/simt/recurrent/elman_host.h"
#include "forward_wide_host.h"

SIMT_KERNELS(elman) = { CELL_WIDE_KERNEL,
                        { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                        { 0 } };
