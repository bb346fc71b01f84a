/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_parallel_cross_entropy on devices: the host side. */
#include "backends/simt/comm/vocab_parallel_cross_entropy.h"
#include "backends/simt/loss/cross_entropy_launch.h"
#include "exchanges.h"
#include "spec/places/vocab_parallel_cross_entropy.h"

TRINE_ALIKE(VOCAB_PARALLEL_CROSS_ENTROPY_TYPE_T, SIMT_FIRST_TYPE);

enum { WARP = 32, WORDS = sizeof(vocab_told) / sizeof(int64_t) };

static size_t workspace(const trine_call *call) {
    return (size_t)call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_R] *
           ((size_t)(1 + call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_RANKS]) * sizeof(vocab_told) + sizeof(vocab_row));
}

static int64_t whole_items(const trine_call *call) {
    return GRADIENT_BYTES / (int64_t)trine_dtype_size(call->type[VOCAB_PARALLEL_CROSS_ENTROPY_TYPE_T]);
}

static vocab_params params_of(const trine_call *call) {
    const trine_vocab_parallel_cross_entropy_args *args = call->args;
    const int64_t ranks = call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_RANKS],
                  rows = call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_R],
                  v = call->dim[VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V];
    vocab_told *told = call->workspace;
    return (vocab_params){ .all = { .loss = simt_rows_of(call, VOCAB_PARALLEL_CROSS_ENTROPY_LOSS),
                                    LOGITS_PARAMS(call, args, VOCAB_PARALLEL_CROSS_ENTROPY, ranks * v) },
                           .ahead = simt_ahead_of(call, VOCAB_PARALLEL_CROSS_ENTROPY_LOGITS),
                           .first = simt_group_rank(call) * v,
                           .v = v,
                           .told = told,
                           .by = told + rows,
                           .row = (vocab_row *)(told + (1 + ranks) * rows),
                           .ranks = (int32_t)ranks };
}

static trine_status put_gradients(const trine_call *call, vocab_params *p) {
    const bool whole = simt_rows_whole(call, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V);
    const int64_t items = whole ? whole_items(call) : SIMT_VECTOR;
    p->all.pieces = simt_divisor_of(simt_blocks(p->v > 0 ? p->v : 1, WARP * items));
    p->all.tasks = p->all.rows * p->all.pieces.by;
    const simt_function function = { .step = loss_narrow(&p->all) ? "narrow_gradient" : "gradient",
                                     .ragged = !whole,
                                     .type = { call->type[VOCAB_PARALLEL_CROSS_ENTROPY_TYPE_T] } };
    return simt_launch(call, &function, simt_blocks(p->all.tasks, SIMT_THREADS / WARP), SIMT_THREADS, p, sizeof *p);
}

static trine_status run(const trine_call *call) {
    vocab_params p = params_of(call);
    const int64_t rows = p.all.rows, words = rows * WORDS;
    const trine_tensor own = exchange_row(p.told, TRINE_I64, words),
                       all = exchange_rows(p.told + rows, TRINE_I64, p.ranks, words);
    trine_status status = TRINE_OK;
    if (rows > 0)
        status = simt_launch_rows(call, "sums", rows, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V, SIMT_STREAM, &p, sizeof p);
    if (status == TRINE_OK) status = exchange_copies(call, &own, &all, words, 0);
    if (status != TRINE_OK || rows == 0) return status;
    status = simt_launch(call, &(simt_function){ .step = "losses" }, simt_blocks(rows, SIMT_THREADS), SIMT_THREADS, &p,
                         sizeof p);
    return status == TRINE_OK && simt_present(call, VOCAB_PARALLEL_CROSS_ENTROPY_DLOGITS) ? put_gradients(call, &p)
                                                                                          : status;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    simt_row_edges(edges, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_R, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V, SIMT_STREAM);
    exchange_edges(call, edges, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_R, 1, 1);
    trine_kernel_edge(edges, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V, WARP * SIMT_VECTOR);
    trine_kernel_edge(edges, VOCAB_PARALLEL_CROSS_ENTROPY_DIM_V, WARP * whole_items(call));
}

SIMT_KERNELS(vocab_parallel_cross_entropy) = {
    { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
