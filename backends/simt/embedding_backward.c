/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward on devices: the host side. */
#include "embedding_backward.h"
#include "host.h"

enum { DY, IDS, DTABLE }; /* as in the specification */

static int64_t tokens_of(const trine_call *call) { return call->tensor[IDS].shape[0]; }
static int64_t rows_of(const trine_call *call) { return call->tensor[DTABLE].shape[0]; }

static const char *refuse(const trine_call *call) { return tokens_of(call) > UINT32_MAX ? "more than 2^32 ids" : NULL; }

static size_t workspace(const trine_call *call) { return (size_t)(2 * tokens_of(call) + rows_of(call) + 1) * sizeof(int64_t); }

/* Digits of the numbers 0 .. v, made even so that the sort ends where it began. */
static int32_t passes_of(int64_t v) {
    int32_t passes = 0;
    for (; v > 0; v >>= SORT_BITS) passes++;
    return passes + passes % 2;
}

static trine_status launch(const trine_call *call) {
    int64_t *const token = call->workspace;
    const int64_t t = tokens_of(call), v = rows_of(call);
    const embedding_backward_params p = {
        .dy = simt_rows_of(call, DY),
        .dtable = simt_rows_of(call, DTABLE),
        .ids = call->tensor[IDS].data,
        .t = t,
        .v = v,
        .n = call->tensor[DTABLE].shape[1],
        .token = { token, token + t },
        .start = token + 2 * t,
        .passes = passes_of(v),
        .long_ids = call->tensor[IDS].dtype == TRINE_I64,
        .accumulate = ((const trine_embedding_backward_args *)call->args)->accumulate,
        .wide = simt_aligned(call, DY) && simt_aligned(call, DTABLE),
    };
    const simt_function sum = { .step = "sum", .type = { call->tensor[DY].dtype, call->tensor[DTABLE].dtype } };
    const int64_t tasks = v * simt_blocks(p.n, SUM_COLUMNS);
    trine_status status = simt_launch(call, &(simt_function){ .step = "sort" }, 1, SORT_THREADS, &p, sizeof p);
    if (status == TRINE_OK) status = simt_launch(call, &(simt_function){ .step = "start" }, simt_blocks(v + 1, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK) return status;
    return simt_launch(call, &sum, simt_blocks(tasks, SIMT_THREADS / 32), SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(embedding_backward) = { { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch }, { 0 } };
