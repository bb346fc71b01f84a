/* SPDX-License-Identifier: Apache-2.0 */
/* attention with the same bits on every device: what lists of its kernels have. */
#ifndef TRINE_SIMT_ATTENTION_SAME_HOST_H
#define TRINE_SIMT_ATTENTION_SAME_HOST_H

#include "backends/backend.h"

const char *attention_same_refuse(const trine_call *call);
trine_status attention_same_launch(const trine_call *call);
void attention_same_edges(const trine_call *call, trine_kernel_edges *edges);

#define ATTENTION_SAME_KERNEL \
    { .name = SIMT_NAME "_same", \
      .refuse = attention_same_refuse, \
      .launch = attention_same_launch, \
      .edges = attention_same_edges, \
      .same = true }

#endif
