/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_sharded on the CPU: each rank adds up, in f32, the gradients of its part, which adamw then steps; all ranks get
 * all parts. global_norm_clip has the squares, of which all ranks get all sums. */
#include <inttypes.h>

#include <trine/ops.h>

#include "backends/nested_step.h"
#include "backends/cpu/comm/sums.h"
#include "spec/places/adamw_sharded.h"

/* What a rank tells the others before all else. */
typedef struct told {
    int64_t step; /* 1 where no tensor has it */
    float found;
} told;

typedef struct job {
    const trine_call *call;
    const trine_adamw_sharded_args *args;
    int ranks, rank;
    int64_t n, p, most; /* most: elements of any part */
    bool tells, norms;
    trine_dtype G, C;
    float *coefficient, *found;
    double *own, *squares; /* of this rank's part, of all */
    float *x;              /* of this rank's part the sums */
    size_t bytes;          /* of the workspace, before that of the ops within */
    bool begun;            /* has a step been posted? */
} job;

/* Elements of a rank's part. */
static int64_t part_of(const job *b, int rank) {
    const int64_t rest = b->n - rank * b->p;
    return rest <= 0 ? 0 : rest < b->p ? rest : b->p;
}

static void *place(job *b, int64_t bytes) {
    void *at = b->call->workspace ? (char *)b->call->workspace + b->bytes : NULL;
    b->bytes += (size_t)cpu_round_up(bytes, 64);
    return at;
}

static job job_of(const trine_call *call) {
    job b = { .call = call,
              .args = call->args,
              .ranks = (int)call->dim[ADAMW_SHARDED_DIM_RANKS],
              .rank = call->comm ? trine_cpu_group_rank(call) : 0,
              .n = call->dim[ADAMW_SHARDED_DIM_N],
              .p = call->dim[ADAMW_SHARDED_DIM_P],
              .G = call->type[ADAMW_SHARDED_TYPE_G],
              .C = call->type[ADAMW_SHARDED_TYPE_C] };
    b.most = part_of(&b, 0);
    b.tells = trine_call_given(call, ADAMW_SHARDED_STEP_TENSOR) || trine_call_given(call, ADAMW_SHARDED_FOUND_INF);
    b.norms = b.args->max_norm > 0 || trine_call_given(call, ADAMW_SHARDED_NORM);
    b.coefficient = place(&b, (int64_t)sizeof *b.coefficient);
    b.found = place(&b, (int64_t)sizeof *b.found);
    b.own = place(&b, (int64_t)sizeof *b.own);
    b.squares = place(&b, b.ranks * (int64_t)sizeof *b.squares);
    b.x = place(&b, b.most * (int64_t)sizeof *b.x);
    return b;
}

/* ------------------------------------------------------------------------------------------------------- nested ops */

/* A zero that is meant, where one that is left stands for another number. */
static float meant(float x) { return x == 0 ? -0.0f : x; }

static trine_status sum_squares(const job *b, size_t *bytes) {
    const trine_tensor x = trine_tensor_1d(b->x, TRINE_F32, part_of(b, b->rank)),
                       own = trine_tensor_1d(b->own, TRINE_F64, 1);
    const trine_global_norm_clip_args args = { .struct_size = sizeof args, .x = &x, .sum_squares = &own };
    return nested_step(b->call, b->bytes, TRINE_OP_GLOBAL_NORM_CLIP, &args, bytes);
}

static trine_status find_coefficient(const job *b, size_t *bytes) {
    const trine_tensor *given = trine_call_given(b->call, ADAMW_SHARDED_NORM);
    const trine_tensor x = trine_tensor_1d(b->x, TRINE_F32, part_of(b, b->rank)),
                       squares = trine_tensor_1d(b->squares, TRINE_F64, b->ranks),
                       norm = trine_tensor_1d(given ? given->data : NULL, TRINE_F32, 1),
                       coefficient = trine_tensor_1d(b->coefficient, TRINE_F32, 1);
    const trine_global_norm_clip_args args = { .struct_size = sizeof args,
                                               .x = &x,
                                               .other_squares = &squares,
                                               .norm = given ? &norm : NULL,
                                               .coefficient = &coefficient,
                                               .max_norm = b->args->max_norm,
                                               .own_included = 1 };
    return nested_step(b->call, b->bytes, TRINE_OP_GLOBAL_NORM_CLIP, &args, bytes);
}

static char *own_copy(const job *b) {
    char *copy = b->call->tensor[ADAMW_SHARDED_COPY].data;
    return copy ? copy + b->rank * b->p * (int64_t)trine_dtype_size(b->C) : NULL;
}

/* This rank's part of an operand; its scalars are as they are, but for their shape in a call of all ranks. */
static trine_tensor part(const job *b, int tensor) {
    const trine_tensor *t = &b->call->tensor[tensor];
    return trine_tensor_1d(t->data, t->dtype, part_of(b, b->rank));
}
static trine_tensor few(const job *b, int tensor, int64_t n) {
    const trine_tensor *t = trine_call_given(b->call, tensor);
    return t ? trine_tensor_1d(t->data, t->dtype, n) : (trine_tensor){ 0 };
}
static const trine_tensor *if_given(const trine_tensor *t) { return t->rank > 0 ? t : NULL; }

static trine_status step_part(const job *b, size_t *bytes) {
    const trine_adamw_sharded_args *a = b->args;
    const int64_t n = part_of(b, b->rank);
    const trine_tensor param = part(b, ADAMW_SHARDED_PARAM), m = part(b, ADAMW_SHARDED_M), v = part(b, ADAMW_SHARDED_V),
                       grad = trine_tensor_1d(b->x, TRINE_F32, n), copy = trine_tensor_1d(own_copy(b), b->C, n),
                       coefficient = trine_tensor_1d(b->coefficient, TRINE_F32, 1),
                       found = trine_tensor_1d(b->found, TRINE_F32, 1), lr = few(b, ADAMW_SHARDED_LR_TENSOR, 1),
                       number = few(b, ADAMW_SHARDED_STEP_TENSOR, 1), philox = few(b, ADAMW_SHARDED_PHILOX, 2);
    const trine_adamw_args args = { .struct_size = sizeof args,
                                    .param = &param,
                                    .grad = &grad,
                                    .m = &m,
                                    .v = &v,
                                    .copy = b->C != param.dtype ? &copy : NULL,
                                    .grad_scale = a->max_norm > 0 ? &coefficient : NULL,
                                    .lr_tensor = if_given(&lr),
                                    .step_tensor = if_given(&number),
                                    .found_inf = b->tells ? &found : NULL,
                                    .philox = if_given(&philox),
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

static size_t workspace(const trine_call *call) {
    const job b = job_of(call);
    size_t bytes = 0;
    if (b.norms && sum_squares(&b, &bytes) == TRINE_OK) find_coefficient(&b, &bytes);
    step_part(&b, &bytes);
    return b.bytes + bytes;
}

/* -------------------------------------------------------------------------------------------------------- exchanges */

/* That which tensors are given decides. */
static trine_status post(job *b) {
    const bool first = !b->begun;
    b->begun = true;
    return trine_cpu_group_post(b->call, first, 1 + 2 * b->tells + 4 * b->norms);
}

/* Every rank judges what all say, so that all return the same, and skip the same steps. */
static trine_status tell(job *b) {
    const trine_tensor *number = trine_call_given(b->call, ADAMW_SHARDED_STEP_TENSOR),
                       *found = trine_call_given(b->call, ADAMW_SHARDED_FOUND_INF);
    const told mine = { .step = number ? *(const int64_t *)number->data : 1,
                        .found = found ? *(const float *)found->data : 0 };
    char *half;
    trine_status status = trine_cpu_group_ready(b->call, &half);
    if (status != TRINE_OK) return status;
    memcpy(half, &mine, sizeof mine);
    if ((status = post(b)) != TRINE_OK) return status;
    *b->found = 0;
    for (int r = 0; r < b->ranks; r++) {
        told theirs;
        memcpy(&theirs, trine_cpu_group_half(b->call, r), sizeof theirs);
        if (theirs.step < 1)
            return b->call->host->error(TRINE_ERR_ARGUMENT,
                                        "adamw_sharded: step_tensor of rank %d is %" PRId64 ", but must be at least 1",
                                        r, theirs.step);
        if (theirs.found != 0) *b->found = 1;
    }
    return TRINE_OK;
}

typedef struct scaled {
    sums sums;
    float scale;
} scaled;

INLINE void scaled_range(const scaled *s, int64_t first, int64_t last, trine_dtype T) {
    for (int64_t i = first; i < last; i += VL) {
        const int count = last - i < VL ? (int)(last - i) : VL;
        const vf x = sum_vector(&s->sums, i, count, T, false) * s->scale;
        if (count == VL)
            vstore(s->sums.to, TRINE_F32, i, x);
        else
            vstoren(s->sums.to, TRINE_F32, i, count, x);
    }
}

static void scaled_pieces(const void *context, int64_t first, int64_t last, int thread) {
    const scaled *s = context;
    const int64_t end = last * SUM_PIECE < s->sums.n ? last * SUM_PIECE : s->sums.n;
    (void)thread;
    FOR_TYPE(s->sums.T, scaled_range, s, first * SUM_PIECE, end);
}

static void sum_piece(const job *b, int64_t at, int64_t count, int64_t room) {
    const trine_tensor *scale = trine_call_given(b->call, ADAMW_SHARDED_GRAD_SCALE);
    const int64_t width = (int64_t)trine_dtype_size(b->G), pieces = (count + SUM_PIECE - 1) / SUM_PIECE;
    scaled s = { .sums = { .T = b->G, .ranks = b->ranks, .n = count, .to = (char *)(b->x + at) },
                 .scale = scale ? *(const float *)scale->data : 1 };
    for (int r = 0; r < b->ranks; r++) s.sums.from[r] = trine_cpu_group_half(b->call, r) + b->rank * room * width;
    cpu_shares(b->call, cpu_team(b->call, pieces, count * (b->ranks * width + 4)), pieces, scaled_pieces, &s);
}

/* Of `count` elements from `at` on those that a part has. */
static int64_t left(const job *b, int rank, int64_t at, int64_t count) {
    const int64_t rest = part_of(b, rank) - at;
    return rest <= 0 ? 0 : rest < count ? rest : count;
}

/* Rows of `count` elements of as many parts are copied at once; at most one is shorter, and those behind it empty. */
static void copy_parts(const job *b, copies *c, int64_t at, int64_t count, int64_t width) {
    const int rows = c->rows;
    c->bytes = count * width;
    for (c->rows = 0; c->rows < rows && left(b, c->rows, at, count) == count;) c->rows++;
    if (count > 0 && c->rows > 0) copy_rows(b->call, c);
    for (int r = c->rows; r < rows; r++)
        if (left(b, r, at, count) > 0) copy_row(b->call, c->to[r], c->from[r], left(b, r, at, count) * width);
}

/* In pieces of parts that have room in a half side by side. */
static trine_status add_up(job *b) {
    const int64_t room = copy_room(b->call, b->G, b->ranks), width = (int64_t)trine_dtype_size(b->G);
    const char *grad = b->call->tensor[ADAMW_SHARDED_GRAD].data;
    for (int64_t at = 0; at == 0 || at < b->most; at += room) {
        const int64_t count = b->most - at < room ? b->most - at : room;
        char *half;
        trine_status status = trine_cpu_group_ready(b->call, &half);
        if (status != TRINE_OK) return status;
        copies c = { .rows = b->ranks };
        for (int r = 0; r < b->ranks; r++)
            c.from[r] = grad + (r * b->p + at) * width, c.to[r] = half + r * room * width;
        copy_parts(b, &c, at, count, width);
        if ((status = post(b)) != TRINE_OK) return status;
        if (left(b, b->rank, at, count) > 0) sum_piece(b, at, left(b, b->rank, at, count), room);
    }
    return TRINE_OK;
}

static trine_status share_squares(job *b) {
    char *half;
    trine_status status = trine_cpu_group_ready(b->call, &half);
    if (status != TRINE_OK) return status;
    memcpy(half, b->own, sizeof *b->own);
    if ((status = post(b)) != TRINE_OK) return status;
    for (int r = 0; r < b->ranks; r++) memcpy(&b->squares[r], trine_cpu_group_half(b->call, r), sizeof *b->squares);
    return TRINE_OK;
}

/* Of copy's type param is what all get; else this rank's part of copy. */
static trine_status gather(job *b) {
    const int64_t width = (int64_t)trine_dtype_size(b->C), room = copy_room(b->call, b->C, 1);
    const trine_tensor *param = &b->call->tensor[ADAMW_SHARDED_PARAM];
    const char *own = param->dtype == b->C ? param->data : own_copy(b);
    char *copy = b->call->tensor[ADAMW_SHARDED_COPY].data;
    for (int64_t at = 0; at == 0 || at < b->most; at += room) {
        const int64_t count = b->most - at < room ? b->most - at : room;
        char *half;
        trine_status status = trine_cpu_group_ready(b->call, &half);
        if (status != TRINE_OK) return status;
        if (left(b, b->rank, at, count) > 0)
            copy_row(b->call, half, own + at * width, left(b, b->rank, at, count) * width);
        if ((status = post(b)) != TRINE_OK) return status;
        copies c = { .rows = b->ranks };
        for (int r = 0; r < b->ranks; r++)
            c.from[r] = trine_cpu_group_half(b->call, r), c.to[r] = copy + (r * b->p + at) * width;
        copy_parts(b, &c, at, count, width);
    }
    return TRINE_OK;
}

static trine_status launch(const trine_call *call) {
    job b = job_of(call);
    trine_status status = b.tells ? tell(&b) : TRINE_OK;
    if (status == TRINE_OK) status = add_up(&b);
    if (status == TRINE_OK && b.norms) {
        status = sum_squares(&b, NULL);
        if (status == TRINE_OK) status = share_squares(&b);
        if (status == TRINE_OK) status = find_coefficient(&b, NULL);
    }
    if (status == TRINE_OK) status = step_part(&b, NULL);
    return status == TRINE_OK ? gather(&b) : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ADAMW_SHARDED_DIM_P, VL);
    trine_kernel_edge(edges, ADAMW_SHARDED_DIM_P, SUM_PIECE);
    trine_kernel_edge(edges, ADAMW_SHARDED_DIM_P,
                      copy_room(call, call->type[ADAMW_SHARDED_TYPE_G], call->dim[ADAMW_SHARDED_DIM_RANKS]));
    trine_kernel_edge(edges, ADAMW_SHARDED_DIM_P, copy_room(call, call->type[ADAMW_SHARDED_TYPE_C], 1));
}

CPU_KERNELS(adamw_sharded) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
