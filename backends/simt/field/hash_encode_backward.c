/* SPDX-License-Identifier: Apache-2.0 */
/* hash_encode_backward on devices: the host side. */
#include "backends/simt/reduce/scatter_host.h"
#include "grid_host.h"
#include "spec/places/hash_encode_backward.h"

enum { GRID_SORT_BLOCKS = 512 /* at most: each adds up the counts of all */ };

static int64_t hits_of(const trine_call *call) {
    return call->dim[HASH_ENCODE_BACKWARD_DIM_N] * call->dim[HASH_ENCODE_BACKWARD_DIM_L]
           << call->dim[HASH_ENCODE_BACKWARD_DIM_D];
}

static const char *refuse(const trine_call *call) {
    return call->dim[HASH_ENCODE_BACKWARD_DIM_N] * call->dim[HASH_ENCODE_BACKWARD_DIM_L] > UINT32_MAX >> 4
               ? "2^28 places in levels or more"
               : NULL;
}

/* Of the sort, whose blocks have whole tiles; one block even if there are no hits. */
static int64_t block_hits(int64_t hits) {
    return simt_blocks(hits + (hits == 0), (int64_t)GRID_SORT_BLOCKS * SIMT_THREADS) * SIMT_THREADS;
}
static int64_t blocks_of(int64_t hits) { return simt_blocks(hits + (hits == 0), block_hits(hits)); }
static int64_t partials_of(int64_t hits, int64_t f) { return 2 * simt_blocks(hits, SUM_CHUNK) * f; }

/* Words of 4 bytes: shares and rows of the hits, sums of chunks, then what the sort needs. */
static size_t workspace(const trine_call *call) {
    if (!simt_present(call, HASH_ENCODE_BACKWARD_DTABLE)) return 0;
    const int64_t hits = hits_of(call), f = call->dim[HASH_ENCODE_BACKWARD_DIM_F];
    return (size_t)(hits * (f + 3) + partials_of(hits, f) + 2 * call->dim[HASH_ENCODE_BACKWARD_DIM_E] +
                    blocks_of(hits) * SORT_DIGITS) *
           sizeof(float);
}

static trine_status sum_rows(const trine_call *call, grid_params *p) {
    const trine_dtype type = call->type[HASH_ENCODE_BACKWARD_TYPE_T];
    const int d = (int)call->dim[HASH_ENCODE_BACKWARD_DIM_D];
    const int64_t t = hits_of(call), chunks = simt_blocks(t, SUM_CHUNK);
    p->part = call->workspace;
    p->row = (int32_t *)(p->part + t * p->f);
    float *const partial = (float *)(p->row + t);
    uint32_t *const token = (uint32_t *)(partial + partials_of(t, p->f));
    scatter_params s = {
        .x = { p->part, 0, p->f },
        .y = simt_rows_of(call, HASH_ENCODE_BACKWARD_DTABLE),
        .ids = p->row,
        .t = t,
        .v = p->e,
        .n = p->f,
        .chunks = chunks,
        .partial = partial,
        .token = { token, token + t },
        .first = token + 2 * t,
        .end = token + 2 * t + p->e,
        .count = token + 2 * t + 2 * p->e,
        .block_tokens = block_hits(t),
        .blocks = blocks_of(t),
        .padding = -1,
    };
    const simt_function hits = { .step = "hits", .type = { type }, .variant = d },
                        chunk = { .step = "chunks", .type = { TRINE_F32 } }, sum = { .step = "sum", .type = { type } };
    trine_status status = simt_launch(call, &hits, simt_blocks(p->n * p->l, SIMT_THREADS), SIMT_THREADS, p, sizeof *p);
    if (status == TRINE_OK) status = scatter_sort(call, &s);
    if (status == TRINE_OK)
        status = simt_launch(call, &chunk, simt_blocks(chunks, SIMT_THREADS / 32), SIMT_THREADS, &s, sizeof s);
    return status == TRINE_OK ? simt_launch(call, &sum, simt_blocks(p->e, SIMT_THREADS), SIMT_THREADS, &s, sizeof s)
                              : status;
}

static trine_status launch(const trine_call *call) {
    const trine_hash_encode_backward_args *args = call->args;
    grid_params p =
        grid_params_of(call, HASH_ENCODE_BACKWARD_X, HASH_ENCODE_BACKWARD_TABLE, HASH_ENCODE_BACKWARD_OFFSETS,
                       HASH_ENCODE_BACKWARD_DY, args->per_level_scale, args->base_resolution);
    p.smooth = args->interpolation == TRINE_INTERPOLATION_SMOOTHSTEP;
    p.dx = simt_rows_of(call, HASH_ENCODE_BACKWARD_DX);
    const simt_function slopes = { .step = "slopes",
                                   .type = { call->type[HASH_ENCODE_BACKWARD_TYPE_T] },
                                   .variant = (int)call->dim[HASH_ENCODE_BACKWARD_DIM_D] };
    if (p.dx.data) {
        const trine_status status =
            simt_launch(call, &slopes, simt_blocks(p.n, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
        if (status != TRINE_OK) return status;
    }
    return simt_present(call, HASH_ENCODE_BACKWARD_DTABLE) ? sum_rows(call, &p) : TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t shift = call->dim[HASH_ENCODE_BACKWARD_DIM_D], levels = call->dim[HASH_ENCODE_BACKWARD_DIM_L];
    trine_kernel_edge(edges, HASH_ENCODE_BACKWARD_DIM_N, SIMT_THREADS);
    if (levels > 0) trine_kernel_edge(edges, HASH_ENCODE_BACKWARD_DIM_N, SUM_CHUNK / (levels << shift));
    trine_kernel_edge(edges, HASH_ENCODE_BACKWARD_DIM_E, SORT_DIGITS - 1);
}

SIMT_KERNELS(hash_encode_backward) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
