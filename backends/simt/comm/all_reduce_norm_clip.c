/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_norm_clip on devices: each rank's sums of squares, which all ranks get, are global_norm_clip's
 * others. */
#include <trine/ops.h>

#include "exchanges.h"
#include "spec/places/all_reduce_norm_clip.h"

typedef struct job {
    const trine_call *call;
    int64_t ranks, g;
    trine_tensor x, y, norm, coefficient, own, all; /* own: the sum of squares of x; all: what all ranks tell */
    size_t bytes;                                   /* of the workspace, before that of the ops within */
} job;

/* An output of a rank, of the same sizes in a call of all; rank 0: it is not asked for. */
static trine_tensor flat(const trine_call *call, int place, int64_t n) {
    const trine_tensor *t = trine_call_given(call, place);
    return t ? exchange_row(t->data, t->dtype, n) : (trine_tensor){ 0 };
}

static job job_of(const trine_call *call) {
    enum { ALIGNMENT = 256 };
    const int64_t ranks = call->dim[ALL_REDUCE_NORM_CLIP_DIM_RANKS], n = call->dim[ALL_REDUCE_NORM_CLIP_DIM_N];
    const trine_dtype T = call->type[ALL_REDUCE_NORM_CLIP_TYPE_T];
    double *memory = call->workspace;
    job b = { .call = call, .ranks = ranks };
    if (trine_call_given(call, ALL_REDUCE_NORM_CLIP_OTHER_SQUARES)) b.g = call->dim[ALL_REDUCE_NORM_CLIP_DIM_G];
    b.bytes = (size_t)(simt_blocks((1 + ranks * (1 + b.g)) * (int64_t)sizeof(double), ALIGNMENT) * ALIGNMENT);
    b.x = exchange_row(call->tensor[ALL_REDUCE_NORM_CLIP_X].data, T, n);
    b.y = flat(call, ALL_REDUCE_NORM_CLIP_Y, n);
    b.norm = flat(call, ALL_REDUCE_NORM_CLIP_NORM, 1);
    b.coefficient = flat(call, ALL_REDUCE_NORM_CLIP_COEFFICIENT, 1);
    b.own = exchange_row(memory, TRINE_F64, 1);
    b.all = exchange_row(memory ? memory + 1 : NULL, TRINE_F64, ranks * (1 + b.g));
    return b;
}

static trine_global_norm_clip_args first_args(const job *b) {
    return (trine_global_norm_clip_args){ .struct_size = sizeof(trine_global_norm_clip_args),
                                          .x = &b->x,
                                          .sum_squares = &b->own };
}

static trine_global_norm_clip_args second_args(const job *b) {
    return (trine_global_norm_clip_args){ .struct_size = sizeof(trine_global_norm_clip_args),
                                          .x = &b->x,
                                          .y = b->y.rank > 0 ? &b->y : NULL,
                                          .other_squares = &b->all,
                                          .norm = b->norm.rank > 0 ? &b->norm : NULL,
                                          .coefficient = b->coefficient.rank > 0 ? &b->coefficient : NULL,
                                          .max_norm =
                                              ((const trine_all_reduce_norm_clip_args *)b->call->args)->max_norm,
                                          .own_included = 1 };
}

/* What the calls within need, and whether there are kernels for them. */
static trine_status plan(const trine_call *call, size_t *bytes_out) {
    const job b = job_of(call);
    const trine_global_norm_clip_args first = first_args(&b), second = second_args(&b);
    size_t one = 0, two = 0;
    trine_status status = call->host->nested_workspace(call, TRINE_OP_GLOBAL_NORM_CLIP, &first, &one);
    if (status == TRINE_OK) status = call->host->nested_workspace(call, TRINE_OP_GLOBAL_NORM_CLIP, &second, &two);
    *bytes_out = b.bytes + (one > two ? one : two);
    return status;
}

static const char *refuse(const trine_call *call) {
    size_t bytes;
    return plan(call, &bytes) == TRINE_OK ? NULL : "global_norm_clip has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    return plan(call, &bytes) == TRINE_OK ? bytes : 0;
}

static trine_status run(const trine_call *call) {
    const job b = job_of(call);
    const trine_global_norm_clip_args first = first_args(&b), second = second_args(&b);
    const trine_tensor sums = exchange_rows(b.all.data, TRINE_F64, b.ranks, 1),
                       others = exchange_rows((double *)b.all.data + b.ranks, TRINE_F64, b.ranks, b.g);
    char *memory = (char *)call->workspace + b.bytes;
    const size_t bytes = call->workspace_size - b.bytes;
    trine_status status = call->host->nested_run(call, TRINE_OP_GLOBAL_NORM_CLIP, &first, memory, bytes);
    if (status == TRINE_OK) status = exchange_copies(call, &b.own, &sums, 1, 0);
    if (status == TRINE_OK && b.g > 0)
        status = exchange_copies(call, &call->tensor[ALL_REDUCE_NORM_CLIP_OTHER_SQUARES], &others, b.g, 0);
    return status == TRINE_OK ? call->host->nested_run(call, TRINE_OP_GLOBAL_NORM_CLIP, &second, memory, bytes)
                              : status;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    exchange_edges(call, edges, ALL_REDUCE_NORM_CLIP_DIM_G, 1, 1);
}

SIMT_KERNELS(all_reduce_norm_clip) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
