/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_v on the CPU: all ranks tell all counts, and then a rank's rows for each rank go by its half in turns, as
 * many at a time as it has room for. */
#include "backends/cpu/comm/copy.h"
#include "spec/places/all_to_all_v.h"

typedef struct job {
    const trine_call *call;
    const trine_tensor *x, *counts, *y, *received;
    int ranks, rank;
    int64_t m, n, capacity, row; /* row: bytes */
    /* rows that each rank has for each, and where they begin in its x; of those for this rank, where they go */
    int64_t (*count)[TRINE_MAX_RANKS], (*first)[TRINE_MAX_RANKS];
    int64_t to[TRINE_MAX_RANKS];
} job;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows from one place to another, or zeros: a row of y for each item. */
typedef struct moved {
    const job *b;
    const char *from; /* NULL: zeros; rows one behind the other, unless it is x's */
    char *half;       /* NULL: to y */
    int64_t at;       /* first row of x, or of y */
} moved;

static void move_rows(const void *context, int64_t first, int64_t last, int thread) {
    const moved *v = context;
    const job *b = v->b;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        if (v->half != NULL)
            memcpy(v->half + i * b->row, row_at(b->x, v->at + i, 0), (size_t)b->row);
        else if (v->from != NULL)
            memcpy(row_at(b->y, v->at + i, 0), v->from + i * b->row, (size_t)b->row);
        else
            memset(row_at(b->y, v->at + i, 0), 0, (size_t)b->row);
    }
}

static void move(const job *b, moved v, int64_t rows) {
    v.b = b;
    if (rows > 0 && b->row > 0) cpu_shares(b->call, cpu_team(b->call, rows, rows * b->row), rows, move_rows, &v);
}

static int64_t count_at(const trine_tensor *t, int64_t i) {
    return t->dtype == TRINE_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}

/* The counts of all ranks, cut to what there is; what this one gets is told. */
static trine_status tell_counts(job *b) {
    char *half;
    trine_status status = trine_cpu_group_ready(b->call, &half);
    if (status != TRINE_OK) return status;
    for (int i = 0; i < b->ranks; i++) ((int64_t *)(void *)half)[i] = count_at(b->counts, i);
    if ((status = trine_cpu_group_post(b->call, true, 1)) != TRINE_OK) return status;
    for (int i = 0; i < b->ranks; i++) {
        const int64_t *wanted = (const int64_t *)(const void *)trine_cpu_group_half(b->call, i);
        int64_t at = 0;
        for (int q = 0; q < b->ranks; q++) {
            b->first[i][q] = at;
            b->count[i][q] = wanted[q] > 0 ? least(wanted[q], b->m - at) : 0;
            at += b->count[i][q];
        }
    }
    for (int i = 0; i < b->ranks && b->received != NULL; i++) {
        if (b->received->dtype == TRINE_I64)
            ((int64_t *)b->received->data)[i] = b->count[i][b->rank];
        else
            ((int32_t *)b->received->data)[i] = (int32_t)b->count[i][b->rank];
    }
    return TRINE_OK;
}

/* A rank's half has, one behind the other, so many rows at most for each rank; a longer row goes in pieces. */
static trine_status send_rows(const job *b, int64_t room) {
    int64_t most = 0;
    for (int i = 0; i < b->ranks; i++)
        for (int q = 0; q < b->ranks; q++) most = b->count[i][q] > most ? b->count[i][q] : most;
    for (int64_t at = 0; at < most; at += room) {
        char *half;
        trine_status status = trine_cpu_group_ready(b->call, &half);
        if (status != TRINE_OK) return status;
        for (int q = 0; q < b->ranks; q++)
            move(b, (moved){ .half = half + q * room * b->row, .at = b->first[b->rank][q] + at },
                 least(room, b->count[b->rank][q] - at));
        if ((status = trine_cpu_group_post(b->call, false, 1)) != TRINE_OK) return status;
        for (int i = 0; i < b->ranks; i++)
            move(b, (moved){ .from = trine_cpu_group_half(b->call, i) + b->rank * room * b->row, .at = b->to[i] + at },
                 least(least(room, b->count[i][b->rank] - at), b->capacity - b->to[i] - at));
    }
    return TRINE_OK;
}

/* Rows of which a half has not one for each rank: by columns. */
static trine_status send_columns(const job *b, int64_t bytes) {
    trine_tensor x = *b->x, y = *b->y;
    job part = *b;
    trine_status status = TRINE_OK;
    part.x = &x, part.y = &y;
    for (int64_t at = 0; at < b->row && status == TRINE_OK; at += bytes) {
        x.data = (char *)b->x->data + at;
        y.data = (char *)b->y->data + at;
        part.row = least(bytes, b->row - at);
        status = send_rows(&part, 1);
    }
    return status;
}

static size_t workspace(const trine_call *call) {
    return 2 * (size_t)call->dim[ALL_TO_ALL_V_DIM_RANKS] * TRINE_MAX_RANKS * sizeof(int64_t);
}

static trine_status launch(const trine_call *call) {
    job b = { .call = call,
              .x = &call->tensor[ALL_TO_ALL_V_X],
              .counts = &call->tensor[ALL_TO_ALL_V_COUNTS],
              .y = &call->tensor[ALL_TO_ALL_V_Y],
              .received = trine_call_given(call, ALL_TO_ALL_V_RECEIVED),
              .ranks = (int)call->dim[ALL_TO_ALL_V_DIM_RANKS],
              .rank = trine_cpu_group_rank(call),
              .m = call->dim[ALL_TO_ALL_V_DIM_M],
              .n = call->dim[ALL_TO_ALL_V_DIM_N],
              .capacity = call->dim[ALL_TO_ALL_V_DIM_CAPACITY],
              .count = call->workspace };
    const int64_t bytes = trine_cpu_group_bytes(call) / b.ranks / 64 * 64;
    b.row = b.n * (int64_t)trine_dtype_size(call->type[ALL_TO_ALL_V_TYPE_T]);
    b.first = b.count + b.ranks;
    trine_status status = tell_counts(&b);
    if (status != TRINE_OK || b.row == 0) return status;
    int64_t end = 0;
    for (int i = 0; i < b.ranks; i++) {
        b.to[i] = end;
        end = least(end + b.count[i][b.rank], b.capacity);
    }
    status = b.row <= bytes ? send_rows(&b, bytes / b.row) : send_columns(&b, bytes);
    if (status == TRINE_OK) move(&b, (moved){ .at = end }, b.capacity - end);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t bytes = trine_cpu_group_bytes(call) / call->dim[ALL_TO_ALL_V_DIM_RANKS] / 64 * 64,
                  row = call->dim[ALL_TO_ALL_V_DIM_N] * (int64_t)trine_dtype_size(call->type[ALL_TO_ALL_V_TYPE_T]);
    if (row > 0 && row <= bytes) trine_kernel_edge(edges, ALL_TO_ALL_V_DIM_M, bytes / row);
    trine_kernel_edge(edges, ALL_TO_ALL_V_DIM_N, bytes / (int64_t)trine_dtype_size(call->type[ALL_TO_ALL_V_TYPE_T]));
}

CPU_KERNELS(all_to_all_v) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
