/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel runs a call, and why. */
#ifndef TRINE_DISPATCH_SELECT_H
#define TRINE_DISPATCH_SELECT_H

#include "dispatch.h"

/* As trine_select, and says why: "first that accepts", "tuning cache", "tuned for this device", "TRINE_KERNEL" or
 * "trine_queue_options". */
trine_status trine_select_why(const trine_queue *queue, trine_call *call, const trine_kernel **kernel_out,
                              const char **why_out);

void trine_explain_call(const trine_queue *queue, trine_call *call, trine_explanation *explanation_out);

/* As trine_explain_edges, of a checked call. */
trine_status trine_edges_of(const trine_queue *queue, trine_call *call, const char *kernel, trine_edge *edges_out,
                            int32_t *count_out);

#endif
