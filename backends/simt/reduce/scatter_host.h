/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are added where an index says, on devices: what the host sides of embedding_backward and of
 * scatter_add_rows share. */
#ifndef TRINE_SIMT_SCATTER_HOST_H
#define TRINE_SIMT_SCATTER_HOST_H

#include "scatter.h"
#include "backends/simt/core/host.h"

/* The places of an op's tensors; weight: -1 if it has none. */
typedef struct scatter_tensors {
    int x, ids, weight, y;
} scatter_tensors;

static inline int64_t scatter_tokens(const trine_call *call, const scatter_tensors *at) {
    return call->tensor[at->ids].shape[0];
}
static inline int64_t scatter_partials(const trine_call *call, const scatter_tensors *at) {
    return 2 * simt_blocks(scatter_tokens(call, at), SUM_CHUNK) * call->tensor[at->y].shape[1];
}

/* Of the sort, whose blocks have whole tiles; one block even if there are no tokens. */
static inline int64_t scatter_block_tokens(int64_t t) {
    return simt_blocks(t + (t == 0), SORT_BLOCKS * SIMT_THREADS) * SIMT_THREADS;
}
static inline int64_t scatter_blocks(int64_t t) { return simt_blocks(t + (t == 0), scatter_block_tokens(t)); }

static inline const char *scatter_refuse(const trine_call *call, const scatter_tensors *at) {
    return scatter_tokens(call, at) > UINT32_MAX ? "more than 2^32 ids" : NULL;
}

static inline size_t scatter_workspace(const trine_call *call, const scatter_tensors *at) {
    const int64_t t = scatter_tokens(call, at),
                  words = 2 * t + 2 * call->tensor[at->y].shape[0] + scatter_blocks(t) * SORT_DIGITS;
    return (size_t)scatter_partials(call, at) * sizeof(float) + (size_t)words * sizeof(uint32_t);
}

/* By the digits of the numbers 0 .. v, lowest first. */
static inline trine_status scatter_sort(const trine_call *call, scatter_params *p) {
    trine_status status = TRINE_OK;
    for (int64_t most = p->v; status == TRINE_OK && (p->pass == 0 || most > 0); p->pass++, most >>= SORT_BITS) {
        status = simt_launch(call, &(simt_function){ .step = "count" }, p->blocks, SIMT_THREADS, p, sizeof *p);
        if (status == TRINE_OK)
            status = simt_launch(call, &(simt_function){ .step = "sort" }, p->blocks, SIMT_THREADS, p, sizeof *p);
    }
    p->pass--;
    return status;
}

static inline trine_status scatter_launch(const trine_call *call, const scatter_tensors *at, int64_t padding,
                                          bool accumulate) {
    const int64_t t = scatter_tokens(call, at), v = call->tensor[at->y].shape[0];
    float *const partial = call->workspace;
    uint32_t *const token = (uint32_t *)(partial + scatter_partials(call, at));
    scatter_params p = {
        .x = simt_rows_of(call, at->x),
        .y = simt_rows_of(call, at->y),
        .ids = call->tensor[at->ids].data,
        .weight = at->weight >= 0 && simt_present(call, at->weight) ? call->tensor[at->weight].data : NULL,
        .t = t,
        .v = v,
        .n = call->tensor[at->y].shape[1],
        .chunks = simt_blocks(t, SUM_CHUNK),
        .partial = partial,
        .token = { token, token + t },
        .first = token + 2 * t,
        .end = token + 2 * t + v,
        .count = token + 2 * t + 2 * v,
        .block_tokens = scatter_block_tokens(t),
        .blocks = scatter_blocks(t),
        .long_ids = call->tensor[at->ids].dtype == TRINE_I64,
        .padding = padding,
        .accumulate = accumulate,
        .wide = simt_aligned(call, at->x) && simt_aligned(call, at->y) && call->tensor[at->y].shape[1] % 8 == 0,
    };
    const int64_t tiles = simt_blocks(p.n, SUM_COLUMNS), warps = SIMT_THREADS / 32;
    const simt_function chunks = { .step = "chunks", .type = { call->tensor[at->x].dtype } };
    const simt_function sum = { .step = "sum", .type = { call->tensor[at->x].dtype, call->tensor[at->y].dtype } };
    trine_status status = scatter_sort(call, &p);
    if (status == TRINE_OK)
        status = simt_launch(call, &chunks, simt_blocks(p.chunks * tiles, warps), SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? simt_launch(call, &sum, simt_blocks(v * tiles, warps), SIMT_THREADS, &p, sizeof p)
                              : status;
}

/* Of columns, of tokens of a chunk, of a sort by one block, and by several tiles of each; and of digits of a row: the
 * symbols of columns, tokens and rows. */
static inline void scatter_edges(trine_kernel_edges *edges, int columns, int tokens, int rows) {
    trine_kernel_edge(edges, columns, SIMT_VECTOR);
    trine_kernel_edge(edges, columns, SUM_COLUMNS);
    trine_kernel_edge(edges, tokens, SUM_CHUNK);
    trine_kernel_edge(edges, tokens, SIMT_THREADS);
    trine_kernel_edge(edges, tokens, SORT_BLOCKS * SIMT_THREADS);
    trine_kernel_edge(edges, rows, SORT_DIGITS - 1);
    trine_kernel_edge(edges, rows, SORT_DIGITS * SORT_DIGITS - 1);
}

#endif
