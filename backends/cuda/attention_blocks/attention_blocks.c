/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks on CUDA devices: the host side. */
#include "backends/cuda/driver/state.h"
#include "backends/simt/attention_blocks/lists_host.h"

static lists_params params_of(const trine_call *call) {
    const trine_attention_blocks_args *args = call->args;
    lists_params p = lists_params_of(call, LISTS_ASKED(args, ATTENTION_BLOCKS));
    p.wide = simt_aligned(call, ATTENTION_BLOCKS_Q) && simt_aligned(call, ATTENTION_BLOCKS_K) &&
             simt_aligned(call, ATTENTION_BLOCKS_V) && simt_aligned(call, ATTENTION_BLOCKS_O);
    return p;
}

static const char *refuse_mma(const trine_call *call) {
    const trine_attention_blocks_args *args = call->args;
    if (trine_dtype_size(call->type[ATTENTION_BLOCKS_TYPE_T]) != 2)
        return "tensor cores have no products of this type that the error bound allows";
    if (args->softcap > 0 && (args->softcap < 0x1p-60f || args->softcap > 0x1p60f))
        return "softcap is nearly 0 or huge";
    if (lists_refuse(call)) return lists_refuse(call);
    return LISTS_MMA_BYTES(lists_variant(call)) + LISTS_MMA_LINES > ((const cuda_device *)call->device)->shared
               ? "a block cannot have as much shared memory"
               : NULL;
}

static trine_status launch_mma(const trine_call *call) {
    const lists_params p = params_of(call);
    const int variant = lists_variant(call);
    const simt_function function = { .step = "mma",
                                     .type = { call->type[ATTENTION_BLOCKS_TYPE_T] },
                                     .variant = variant,
                                     .shared = LISTS_MMA_BYTES(variant) };
    return simt_launch(call, &function, (int64_t)p.b * p.bundles * p.lists * p.tiles, LISTS_MMA_THREADS, &p, sizeof p);
}

static trine_status launch(const trine_call *call) {
    const lists_params p = params_of(call);
    const simt_function function = { .variant = lists_variant(call) };
    return simt_launch(call, &function, (int64_t)p.b * p.bundles * p.lists * p.tiles, SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(attention_blocks) = {
    { .name = SIMT_NAME "_mma", .refuse = refuse_mma, .launch = launch_mma, .edges = lists_edges },
    { .name = SIMT_NAME, .refuse = lists_refuse, .launch = launch, .edges = lists_edges },
    { 0 }
};
