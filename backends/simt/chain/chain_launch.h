/* SPDX-License-Identifier: Apache-2.0 */
/* What both kernels of chains ask of the host: how a call's tensors lie, and lists of calls that lie alike. */
#ifndef TRINE_SIMT_CHAIN_LAUNCH_H
#define TRINE_SIMT_CHAIN_LAUNCH_H

#include "backends/backend.h"
#include "chain_source.h"
#include "spec/chain/shape.h"

/* How tensors of `set` lie along the last dimension of `shape`, and along the others, merged where all of them allow.
 * Both begin as zeros. */
void chain_lie(const trine_call *call, uint32_t set, const chain_shape *shape, chain_layout *layout, chain_job *job);

/* How a kernel does a list: calls of one program and one layout are a launch. */
typedef struct chain_list_kernel {
    /* how it would launch a call: all that a launch has one of for all of its calls is in the layout */
    void (*lay_out)(const trine_call *call, const chain_program *program, chain_layout *layout_out, chain_job *job_out);
    int64_t (*blocks)(const chain_program *program, const chain_layout *layout, const chain_job *job);
    trine_status (*launch)(const trine_call *call); /* of one */
    trine_status (*launch_many)(const trine_call *call, const chain_program *program, const chain_layout *layout,
                                const chain_calls *list, int64_t blocks);
} chain_list_kernel;

trine_status chain_launch_list(const chain_list_kernel *kernel, trine_call *const *calls, int64_t count);

#endif
