/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul on devices: the host side. */
#include "grouped_matmul_host.h"

SIMT_KERNELS(grouped_matmul) = { { .name = SIMT_NAME,
                                   .refuse = grouped_matmul_refuse,
                                   .workspace = grouped_matmul_workspace,
                                   .launch = grouped_matmul_launch,
                                   .edges = grouped_matmul_edges },
                                 { 0 } };
