/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_sharded on devices: the sums of a rank's part, of which adamw makes the step; then all ranks get all parts.
 * global_norm_clip has the squares, of which all ranks get all sums. */
#include "adamw_sharded.h"

#include <trine/ops.h>

#include "backends/nested_step.h"
#include "exchanges.h"
#include "spec/places/adamw_sharded.h"

enum { ALIGNMENT = 256 };

typedef struct job {
    const trine_call *call;
    const trine_adamw_sharded_args *args;
    int64_t ranks, rank, n, p, most, own; /* elements of any part at most, of this rank's */
    bool norms, finds;
    trine_dtype G, T, C;
    float *coefficient, *found, *x;  /* x: of this rank's part the sums */
    double *own_squares, *squares;   /* of this rank's part, of all */
    char *copy;                      /* this rank's part */
    trine_tensor param, m, v;        /* likewise */
    trine_tensor lr, number, philox; /* of rank 0: not given */
    size_t bytes;                    /* of the workspace, before that of the ops within */
} job;

static void *place(job *b, int64_t bytes) {
    void *at = b->call->workspace ? (char *)b->call->workspace + b->bytes : NULL;
    b->bytes += (size_t)(simt_blocks(bytes, ALIGNMENT) * ALIGNMENT);
    return at;
}

/* n elements of an operand, whatever its shape in a call of all ranks. */
static trine_tensor few(const trine_call *call, int tensor, int64_t n) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? exchange_row(t->data, t->dtype, n) : (trine_tensor){ 0 };
}

static job job_of(const trine_call *call, int64_t rank) {
    job b = { .call = call,
              .args = call->args,
              .ranks = call->dim[ADAMW_SHARDED_DIM_RANKS],
              .rank = rank,
              .n = call->dim[ADAMW_SHARDED_DIM_N],
              .p = call->dim[ADAMW_SHARDED_DIM_P],
              .G = call->type[ADAMW_SHARDED_TYPE_G],
              .T = call->type[ADAMW_SHARDED_TYPE_T],
              .C = call->type[ADAMW_SHARDED_TYPE_C] };
    const int64_t rest = b.n - b.rank * b.p;
    char *copy = call->tensor[ADAMW_SHARDED_COPY].data;
    b.most = b.n < b.p ? b.n : b.p;
    b.own = rest <= 0 ? 0 : rest < b.p ? rest : b.p;
    b.finds = trine_call_given(call, ADAMW_SHARDED_FOUND_INF) != NULL;
    b.norms = b.args->max_norm > 0 || trine_call_given(call, ADAMW_SHARDED_NORM);
    b.coefficient = place(&b, (int64_t)sizeof *b.coefficient);
    b.found = place(&b, (int64_t)sizeof *b.found);
    b.own_squares = place(&b, (int64_t)sizeof *b.own_squares);
    b.squares = place(&b, b.ranks * (int64_t)sizeof *b.squares);
    b.x = place(&b, b.most * (int64_t)sizeof *b.x);
    if (copy && b.own > 0) b.copy = copy + b.rank * b.p * (int64_t)trine_dtype_size(b.C);
    b.param = few(call, ADAMW_SHARDED_PARAM, b.own);
    b.m = few(call, ADAMW_SHARDED_M, b.own);
    b.v = few(call, ADAMW_SHARDED_V, b.own);
    b.lr = few(call, ADAMW_SHARDED_LR_TENSOR, 1);
    b.number = few(call, ADAMW_SHARDED_STEP_TENSOR, 1);
    b.philox = few(call, ADAMW_SHARDED_PHILOX, 2);
    return b;
}

/* ------------------------------------------------------------------------------------------------------- nested ops */

/* A zero that is meant, where one that is left stands for another number. */
static float meant(float x) { return x == 0 ? -0.0f : x; }
static const trine_tensor *if_given(const trine_tensor *t) { return t->rank > 0 ? t : NULL; }

static trine_status sum_squares(const job *b, size_t *bytes) {
    const trine_tensor x = exchange_row(b->x, TRINE_F32, b->own), own = exchange_row(b->own_squares, TRINE_F64, 1);
    const trine_global_norm_clip_args args = { .struct_size = sizeof args, .x = &x, .sum_squares = &own };
    return nested_step(b->call, b->bytes, TRINE_OP_GLOBAL_NORM_CLIP, &args, bytes);
}

static trine_status find_coefficient(const job *b, size_t *bytes) {
    const trine_tensor x = exchange_row(b->x, TRINE_F32, b->own),
                       squares = exchange_row(b->squares, TRINE_F64, b->ranks),
                       coefficient = exchange_row(b->coefficient, TRINE_F32, 1),
                       norm = few(b->call, ADAMW_SHARDED_NORM, 1);
    const trine_global_norm_clip_args args = { .struct_size = sizeof args,
                                               .x = &x,
                                               .other_squares = &squares,
                                               .norm = if_given(&norm),
                                               .coefficient = &coefficient,
                                               .max_norm = b->args->max_norm,
                                               .own_included = 1 };
    return nested_step(b->call, b->bytes, TRINE_OP_GLOBAL_NORM_CLIP, &args, bytes);
}

static trine_status step_part(const job *b, size_t *bytes) {
    const trine_adamw_sharded_args *a = b->args;
    const trine_tensor grad = exchange_row(b->x, TRINE_F32, b->own), copy = exchange_row(b->copy, b->C, b->own),
                       coefficient = exchange_row(b->coefficient, TRINE_F32, 1),
                       found = exchange_row(b->found, TRINE_F32, 1);
    const trine_adamw_args args = { .struct_size = sizeof args,
                                    .param = &b->param,
                                    .grad = &grad,
                                    .m = &b->m,
                                    .v = &b->v,
                                    .copy = b->C != b->T ? &copy : NULL,
                                    .grad_scale = a->max_norm > 0 ? &coefficient : NULL,
                                    .lr_tensor = if_given(&b->lr),
                                    .step_tensor = if_given(&b->number),
                                    .found_inf = b->finds ? &found : NULL,
                                    .philox = if_given(&b->philox),
                                    .lr = a->lr,
                                    .beta1 = meant(a->beta1),
                                    .beta2 = meant(a->beta2),
                                    .eps = meant(a->eps),
                                    .weight_decay = a->weight_decay,
                                    .step = a->step,
                                    .seed = a->seed,
                                    .stream = a->stream + ((uint64_t)b->rank << 56),
                                    .stochastic = a->stochastic };
    return nested_step(b->call, b->bytes, TRINE_OP_ADAMW, &args, bytes);
}

/* The rank of the last elements, whose part may have fewer than that of rank 0, or that has none. */
static int64_t last_rank(const trine_call *call) {
    const int64_t n = call->dim[ADAMW_SHARDED_DIM_N], p = call->dim[ADAMW_SHARDED_DIM_P];
    return p > 0 && n / p < call->dim[ADAMW_SHARDED_DIM_RANKS] ? n / p : 0;
}

static trine_status plan_part(const job *b, size_t *bytes) {
    trine_status status = step_part(b, bytes);
    if (status == TRINE_OK && b->norms) status = sum_squares(b, bytes);
    return status == TRINE_OK && b->norms ? find_coefficient(b, bytes) : status;
}

/* What the ops within need on any rank, and whether there are kernels for them. */
static trine_status plan(const trine_call *call, size_t *bytes_out) {
    const job first = job_of(call, 0), last = job_of(call, last_rank(call));
    size_t bytes = 0;
    trine_status status = plan_part(&first, &bytes);
    if (status == TRINE_OK && last.rank > 0) status = plan_part(&last, &bytes);
    *bytes_out = first.bytes + bytes;
    return status;
}

static const char *refuse(const trine_call *call) {
    size_t bytes;
    return plan(call, &bytes) == TRINE_OK ? NULL : "adamw or global_norm_clip has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    return plan(call, &bytes) == TRINE_OK ? bytes : 0;
}

/* -------------------------------------------------------------------------------------------------------- exchanges */

static trine_status find(const job *b) {
    exchange_params p = {
        .x = b->call->tensor[ADAMW_SHARDED_FOUND_INF].data, .y = b->found, .n = 1, .kind = TRINE_RANKS_MAX
    };
    return simt_exchange(b->call, &(simt_function){ .step = "found" }, &p, 1, 1);
}

static trine_status share_squares(const job *b) {
    exchange_params p = {
        .x = b->own_squares, .y = b->squares, .n = 1, .y_row = (int64_t)sizeof *b->squares, .aligned = true
    };
    return simt_exchange(b->call, &(simt_function){ .step = "squares" }, &p, 1, 1);
}

static sharded_params exchange_parts(const job *b, const void *x, void *y, trine_dtype type) {
    const int64_t row = b->p * (int64_t)trine_dtype_size(type);
    return (sharded_params){ .exchange = { .x = x,
                                           .y = y,
                                           .n = b->most,
                                           .aligned =
                                               ((uintptr_t)x | (uintptr_t)y | (uintptr_t)row) % EXCHANGE_PACKET == 0 },
                             .all = b->n,
                             .part = b->p };
}

static trine_status add_up(const job *b) {
    const trine_tensor *scale = trine_call_given(b->call, ADAMW_SHARDED_GRAD_SCALE);
    sharded_params p = exchange_parts(b, b->call->tensor[ADAMW_SHARDED_GRAD].data, b->x, b->G);
    const int64_t width = (int64_t)trine_dtype_size(b->G);
    p.exchange.x_row = b->p * width;
    p.exchange.kind = TRINE_RANKS_SUM;
    p.scale = scale ? scale->data : NULL;
    return simt_exchange_more(b->call, &(simt_function){ .type = { b->G } }, &p, sizeof p,
                              simt_blocks(b->most * width, EXCHANGE_PACKET), 1);
}

/* Of copy's type param is what all get; else this rank's part of copy. */
static trine_status gather(const job *b) {
    const int64_t width = (int64_t)trine_dtype_size(b->C);
    sharded_params p =
        exchange_parts(b, b->C == b->T ? b->param.data : b->copy, b->call->tensor[ADAMW_SHARDED_COPY].data, b->C);
    p.exchange.y_row = b->p * width;
    return simt_exchange_more(b->call, &(simt_function){ .variant = (int)width }, &p, sizeof p,
                              simt_blocks(b->most * width, EXCHANGE_PACKET), 1);
}

static trine_status run_part(const trine_call *call, int64_t rank) {
    const job b = job_of(call, rank);
    trine_status status = b.finds ? find(&b) : TRINE_OK;
    if (status == TRINE_OK) status = add_up(&b);
    if (status == TRINE_OK && b.norms) {
        status = sum_squares(&b, NULL);
        if (status == TRINE_OK) status = share_squares(&b);
        if (status == TRINE_OK) status = find_coefficient(&b, NULL);
    }
    if (status == TRINE_OK) status = step_part(&b, NULL);
    return status == TRINE_OK ? gather(&b) : status;
}

/* Parts of other sizes may need other code: all is loaded. */
static trine_status run(const trine_call *call) {
    if (!simt_group_loads(call)) return run_part(call, simt_group_rank(call));
    const trine_status status = run_part(call, 0);
    return status == TRINE_OK ? run_part(call, last_rank(call)) : status;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t G = (int64_t)trine_dtype_size(call->type[ADAMW_SHARDED_TYPE_G]),
                  C = (int64_t)trine_dtype_size(call->type[ADAMW_SHARDED_TYPE_C]);
    exchange_edges(call, edges, ADAMW_SHARDED_DIM_P, EXCHANGE_PACKET / G, 1);
    exchange_edges(call, edges, ADAMW_SHARDED_DIM_P, EXCHANGE_PACKET / C, 1);
}

SIMT_KERNELS(adamw_sharded) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
