/* SPDX-License-Identifier: Apache-2.0 */
/* attention_blocks_backward on devices: the host side. */
#include "lists_host.h"

static lists_params params_of(const trine_call *call, size_t *bytes_out) {
    const trine_attention_blocks_backward_args *args = call->args;
    lists_params p = lists_params_of(call, LISTS_ASKED(args, ATTENTION_BLOCKS_BACKWARD));
    const int64_t lists = (int64_t)p.b * p.hl;
    char *const at = call->workspace;
    p.chunks = (int32_t)simt_blocks(p.entries, LISTS_CHUNK);
    p.dout = lists_tokens(call, ATTENTION_BLOCKS_BACKWARD_DOUT),
    p.dq = lists_tokens(call, ATTENTION_BLOCKS_BACKWARD_DQ);
    p.dk = lists_tokens(call, ATTENTION_BLOCKS_BACKWARD_DK), p.dv = lists_tokens(call, ATTENTION_BLOCKS_BACKWARD_DV);
    p.dbias = lists_entries(call, ATTENTION_BLOCKS_BACKWARD_DBIAS);
    const int64_t sizes[] = { (int64_t)p.b * p.h * p.sq * (int64_t)sizeof *p.delta,
                              simt_present(call, ATTENTION_BLOCKS_BACKWARD_DBIAS)
                                  ? (int64_t)p.b * p.bundles * p.tiles * p.entries * (int64_t)sizeof *p.partial
                                  : 0,
                              lists * p.chunks * p.key_blocks * (int64_t)sizeof *p.counts,
                              lists * (p.key_blocks + 1) * (int64_t)sizeof *p.begins,
                              lists * p.entries * (int64_t)sizeof *p.visits };
    int64_t before[6] = { 0 };
    for (int i = 0; i < 5; i++) before[i + 1] = before[i] + (sizes[i] + 255) / 256 * 256;
    *bytes_out = (size_t)before[5];
    if (at == NULL) return p;
    p.delta = (float *)(void *)at, p.partial = (float *)(void *)(at + before[1]);
    p.counts = (int32_t *)(void *)(at + before[2]), p.begins = (int32_t *)(void *)(at + before[3]);
    p.visits = (lists_visit *)(void *)(at + before[4]);
    return p;
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    params_of(call, &bytes);
    return bytes;
}

static trine_status launch(const trine_call *call) {
    size_t bytes;
    const lists_params p = params_of(call, &bytes);
    const int variant = lists_variant(call);
    const int64_t lists = (int64_t)p.b * p.hl, chunks = lists * p.chunks * simt_blocks(p.key_blocks, SIMT_THREADS);
    const struct {
        simt_function function;
        int64_t blocks;
    } steps[] = {
        { { .step = "delta" }, simt_blocks((int64_t)p.b * p.h * p.sq, SIMT_THREADS / 32) },
        { { .step = "count" }, chunks },
        { { .step = "add" }, lists },
        { { .step = "turn" }, chunks },
        { { .step = "queries", .variant = variant }, (int64_t)p.b * p.bundles * p.lists * p.tiles },
        { { .step = "keys", .variant = variant }, (int64_t)p.b * p.hk * p.key_blocks * p.key_tiles },
        { { .step = "bias" }, p.dbias.data ? simt_blocks(lists * p.entries, SIMT_THREADS) : 0 },
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const trine_status status = simt_launch(call, &steps[i].function, steps[i].blocks, SIMT_THREADS, &p, sizeof p);
        if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    lists_edges(call, edges);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_ENTRIES, LISTS_CHUNK);
}

SIMT_KERNELS(attention_blocks_backward) = {
    { .name = SIMT_NAME, .refuse = lists_refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
