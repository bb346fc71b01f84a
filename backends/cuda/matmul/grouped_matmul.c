/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on CUDA devices: the kernels in the order in which they are preferred. That for sm_90a chooses its
 * tiles' columns; each of them follows, for TRINE_KERNEL. */
#include "backends/simt/matmul/grouped_matmul_host.h"
#include "grouped_matmul_sm90_host.h"

#define SM90(text, columns) \
    { .name = SIMT_NAME text, \
      .refuse = grouped_matmul_sm90_refuse, \
      .workspace = grouped_matmul_sm90_workspace, \
      .launch = grouped_matmul_sm90_launch, \
      .self = &(const int){ columns }, \
      .edges = grouped_matmul_sm90_edges }

SIMT_KERNELS(grouped_matmul) = { SM90("_sm90", 0),
                                 { .name = SIMT_NAME,
                                   .refuse = grouped_matmul_refuse,
                                   .workspace = grouped_matmul_workspace,
                                   .launch = grouped_matmul_launch,
                                   .edges = grouped_matmul_edges },
                                 SM90("_sm90_256", 256),
                                 SM90("_sm90_128", 128),
                                 SM90("_sm90_64", 64),
                                 { 0 } };
