/* SPDX-License-Identifier: Apache-2.0 */
/* matmul with the same bits on every device: what lists of its kernels have. */
#ifndef TRINE_SIMT_MATMUL_SAME_HOST_H
#define TRINE_SIMT_MATMUL_SAME_HOST_H

#include "backends/backend.h"

const char *matmul_same_refuse(const trine_call *call);
trine_status matmul_same_launch(const trine_call *call);
void matmul_same_edges(const trine_call *call, trine_kernel_edges *edges);

#define MATMUL_SAME_KERNEL \
    { .name = SIMT_NAME "_same", \
      .refuse = matmul_same_refuse, \
      .launch = matmul_same_launch, \
      .edges = matmul_same_edges, \
      .same = true }

#endif
