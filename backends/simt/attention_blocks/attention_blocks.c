/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks on devices: the host side. */
#include "lists_host.h"

static trine_status launch(const trine_call *call) {
    const trine_attention_blocks_args *args = call->args;
    const lists_params p = lists_params_of(call, LISTS_ASKED(args, ATTENTION_BLOCKS));
    const simt_function function = { .variant = lists_variant(call) };
    return simt_launch(call, &function, (int64_t)p.b * p.bundles * p.lists * p.tiles, SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(attention_blocks) = {
    { .name = SIMT_NAME, .refuse = lists_refuse, .launch = launch, .edges = lists_edges }, { 0 }
};
