/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward on devices: the host side. */
#include "embedding_backward.h"
#include "backends/simt/core/host.h"
#include "spec/places/embedding_backward.h"

static int64_t tokens_of(const trine_call *call) { return call->tensor[EMBEDDING_BACKWARD_IDS].shape[0]; }
static int64_t rows_of(const trine_call *call) { return call->tensor[EMBEDDING_BACKWARD_DTABLE].shape[0]; }
static int64_t partials_of(const trine_call *call) {
    return 2 * simt_blocks(tokens_of(call), SUM_CHUNK) * call->tensor[EMBEDDING_BACKWARD_DTABLE].shape[1];
}

/* Of the sort, whose blocks have whole tiles; one block even if there are no tokens. */
static int64_t block_tokens_of(int64_t t) {
    return simt_blocks(t + (t == 0), SORT_BLOCKS * SIMT_THREADS) * SIMT_THREADS;
}
static int64_t blocks_of(int64_t t) { return simt_blocks(t + (t == 0), block_tokens_of(t)); }

static const char *refuse(const trine_call *call) { return tokens_of(call) > UINT32_MAX ? "more than 2^32 ids" : NULL; }

static size_t workspace(const trine_call *call) {
    const int64_t t = tokens_of(call), words = 2 * t + 2 * rows_of(call) + blocks_of(t) * SORT_DIGITS;
    return (size_t)partials_of(call) * sizeof(float) + (size_t)words * sizeof(uint32_t);
}

/* By the digits of the numbers 0 .. v, lowest first. */
static trine_status sort(const trine_call *call, embedding_backward_params *p) {
    trine_status status = TRINE_OK;
    for (int64_t most = p->v; status == TRINE_OK && (p->pass == 0 || most > 0); p->pass++, most >>= SORT_BITS) {
        status = simt_launch(call, &(simt_function){ .step = "count" }, p->blocks, SIMT_THREADS, p, sizeof *p);
        if (status == TRINE_OK)
            status = simt_launch(call, &(simt_function){ .step = "sort" }, p->blocks, SIMT_THREADS, p, sizeof *p);
    }
    p->pass--;
    return status;
}

static trine_status launch(const trine_call *call) {
    const trine_embedding_backward_args *args = call->args;
    const int64_t t = tokens_of(call), v = rows_of(call);
    float *const partial = call->workspace;
    uint32_t *const token = (uint32_t *)(partial + partials_of(call));
    embedding_backward_params p = {
        .dy = simt_rows_of(call, EMBEDDING_BACKWARD_DY),
        .dtable = simt_rows_of(call, EMBEDDING_BACKWARD_DTABLE),
        .ids = call->tensor[EMBEDDING_BACKWARD_IDS].data,
        .t = t,
        .v = v,
        .n = call->tensor[EMBEDDING_BACKWARD_DTABLE].shape[1],
        .chunks = simt_blocks(t, SUM_CHUNK),
        .partial = partial,
        .token = { token, token + t },
        .first = token + 2 * t,
        .end = token + 2 * t + v,
        .count = token + 2 * t + 2 * v,
        .block_tokens = block_tokens_of(t),
        .blocks = blocks_of(t),
        .long_ids = call->tensor[EMBEDDING_BACKWARD_IDS].dtype == TRINE_I64,
        .padding = args->padding_index_set ? args->padding_index : -1,
        .accumulate = args->accumulate,
        .wide = simt_aligned(call, EMBEDDING_BACKWARD_DY) && simt_aligned(call, EMBEDDING_BACKWARD_DTABLE) &&
                call->tensor[EMBEDDING_BACKWARD_DTABLE].shape[1] % 8 == 0,
    };
    const int64_t tiles = simt_blocks(p.n, SUM_COLUMNS), warps = SIMT_THREADS / 32;
    const simt_function chunks = { .step = "chunks", .type = { call->tensor[EMBEDDING_BACKWARD_DY].dtype } };
    const simt_function sum = { .step = "sum",
                                .type = { call->tensor[EMBEDDING_BACKWARD_DY].dtype,
                                          call->tensor[EMBEDDING_BACKWARD_DTABLE].dtype } };
    trine_status status = sort(call, &p);
    if (status == TRINE_OK)
        status = simt_launch(call, &chunks, simt_blocks(p.chunks * tiles, warps), SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? simt_launch(call, &sum, simt_blocks(v * tiles, warps), SIMT_THREADS, &p, sizeof p)
                              : status;
}

/* Of columns, of tokens of a chunk, of a sort by one block, and by several tiles of each; and of digits of a row. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_N, SUM_COLUMNS);
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_T, SUM_CHUNK);
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_T, SIMT_THREADS);
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_T, SORT_BLOCKS * SIMT_THREADS);
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_V, SORT_DIGITS - 1);
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_V, SORT_DIGITS * SORT_DIGITS - 1);
}

SIMT_KERNELS(embedding_backward) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
