/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_norm_clip on the CPU: each rank's sums of squares, which all ranks get, are global_norm_clip's others. */
#include <trine/ops.h>

#include "backends/cpu/comm/copy.h"
#include "spec/places/all_reduce_norm_clip.h"

typedef struct job {
    const trine_call *call;
    trine_tensor x, y, norm, coefficient, own, all; /* own: the sum of squares of x; all: what all ranks tell */
    int64_t told;                                   /* numbers of a rank: that sum, and other_squares */
    size_t bytes;                                   /* of the workspace, before that of the ops within */
} job;

/* An output of a rank, of the same sizes in a call of all; rank 0: it is not asked for. */
static trine_tensor flat(const trine_call *call, int place, int64_t n) {
    const trine_tensor *t = trine_call_given(call, place);
    return t ? trine_tensor_1d(t->data, t->dtype, n) : (trine_tensor){ 0 };
}

static job job_of(const trine_call *call) {
    const int64_t ranks = call->dim[ALL_REDUCE_NORM_CLIP_DIM_RANKS], n = call->dim[ALL_REDUCE_NORM_CLIP_DIM_N];
    const trine_dtype T = call->type[ALL_REDUCE_NORM_CLIP_TYPE_T];
    double *memory = call->workspace;
    job b = { .call = call, .told = 1 };
    if (trine_call_given(call, ALL_REDUCE_NORM_CLIP_OTHER_SQUARES)) b.told += call->dim[ALL_REDUCE_NORM_CLIP_DIM_G];
    b.bytes = (size_t)cpu_round_up((1 + ranks * b.told) * (int64_t)sizeof(double), 64);
    b.x = trine_tensor_1d(call->tensor[ALL_REDUCE_NORM_CLIP_X].data, T, n);
    b.y = flat(call, ALL_REDUCE_NORM_CLIP_Y, n);
    b.norm = flat(call, ALL_REDUCE_NORM_CLIP_NORM, 1);
    b.coefficient = flat(call, ALL_REDUCE_NORM_CLIP_COEFFICIENT, 1);
    b.own = trine_tensor_1d(memory, TRINE_F64, 1);
    b.all = trine_tensor_1d(memory ? memory + 1 : NULL, TRINE_F64, ranks * b.told);
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

/* What this rank tells, number by number, to all ranks, and what they tell. */
static trine_status exchange(const job *b) {
    const trine_call *call = b->call;
    const int64_t room = trine_cpu_group_bytes(call) / (int64_t)sizeof(double);
    const int ranks = (int)call->dim[ALL_REDUCE_NORM_CLIP_DIM_RANKS];
    const trine_tensor *other = &call->tensor[ALL_REDUCE_NORM_CLIP_OTHER_SQUARES];
    double *all = b->all.data;
    for (int64_t at = 0; at < b->told; at += room) {
        const int64_t count = b->told - at < room ? b->told - at : room;
        char *half;
        trine_status status = trine_cpu_group_ready(call, &half);
        if (status != TRINE_OK) return status;
        for (int64_t i = at; i < at + count; i++)
            ((double *)(void *)half)[i - at] =
                i == 0 ? *(const double *)b->own.data : ((const double *)other->data)[i - 1];
        if ((status = trine_cpu_group_post(call, at == 0, 1)) != TRINE_OK) return status;
        for (int r = 0; r < ranks; r++)
            memcpy(all + r * b->told + at, trine_cpu_group_half(call, r), (size_t)count * sizeof *all);
    }
    return TRINE_OK;
}

static size_t workspace(const trine_call *call) {
    const job b = job_of(call);
    const trine_global_norm_clip_args first = first_args(&b), second = second_args(&b);
    size_t one = 0, two = 0;
    call->host->nested_workspace(call, TRINE_OP_GLOBAL_NORM_CLIP, &first, &one);
    call->host->nested_workspace(call, TRINE_OP_GLOBAL_NORM_CLIP, &second, &two);
    return b.bytes + (one > two ? one : two);
}

static trine_status launch(const trine_call *call) {
    const job b = job_of(call);
    const trine_global_norm_clip_args first = first_args(&b), second = second_args(&b);
    char *memory = (char *)call->workspace + b.bytes;
    const size_t bytes = call->workspace_size - b.bytes;
    trine_status status = call->host->nested_run(call, TRINE_OP_GLOBAL_NORM_CLIP, &first, memory, bytes);
    if (status == TRINE_OK) status = exchange(&b);
    return status == TRINE_OK ? call->host->nested_run(call, TRINE_OP_GLOBAL_NORM_CLIP, &second, memory, bytes)
                              : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ALL_REDUCE_NORM_CLIP_DIM_G, trine_cpu_group_bytes(call) / (int64_t)sizeof(double));
    cpu_team_edge(edges, ALL_REDUCE_NORM_CLIP_DIM_N,
                  (int64_t)trine_dtype_size(call->type[ALL_REDUCE_NORM_CLIP_TYPE_T]));
}

CPU_KERNELS(all_reduce_norm_clip) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
