/* SPDX-License-Identifier: Apache-2.0 */
/* embedding_backward on the CPU: the tokens are sorted by row, then each row's gradients are summed in the order of the
 * tokens.
 *
 * The work is a list of pieces, a table row by COLUMNS columns each, in the order of columns, then rows; threads take
 * parts of equal cost. No sum is ever split, so that neither the number of threads nor the parts show in the result. */
#include "ids.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/embedding_backward.h"

enum { COLUMNS = 512 };

/* Workspace: tokens in the order of their rows; `start` of each row therein, and the end. */
static size_t workspace(const trine_call *call) {
    return (size_t)(call->tensor[EMBEDDING_BACKWARD_IDS].shape[0] + call->tensor[EMBEDDING_BACKWARD_DTABLE].shape[0] +
                    1) *
           sizeof(int64_t);
}

/* A stable counting sort. */
static void sort_tokens(const trine_tensor *ids, int64_t v, int64_t *token, int64_t *start) {
    const int64_t t = ids->shape[0];
    memset(start, 0, (size_t)(v + 1) * sizeof *start);
    for (int64_t i = 0; i < t; i++) start[id_at(ids, i)]++;
    int64_t sum = 0;
    for (int64_t row = 0; row <= v; row++) start[row] = sum += start[row]; /* ends */
    for (int64_t i = t - 1; i >= 0; i--) token[--start[id_at(ids, i)]] = i;
}

typedef struct job {
    const trine_call *call;
    const int64_t *token, *start;
    int64_t v, n;    /* rows and columns of the table */
    int64_t padding; /* row to which nothing is added; -1: none */
    bool accumulate;
} job;

/* Cost of the rows before `row`, in rows read or written. */
static int64_t cost_before(const job *j, int64_t row) { return j->start[row] + (j->accumulate ? 0 : row); }

/* The first row that has `cost` or more before it. */
static int64_t row_at(const job *j, int64_t v, int64_t cost) {
    int64_t low = 0, high = v;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (cost_before(j, middle) < cost)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The loops over the columns of a piece: to[i] = from[i], or += it. */
INLINE void read_columns(float *to, const void *from, int64_t at, int n, trine_dtype dtype) {
    int i = 0;
    for (; i + VL <= n; i += VL) vstore(to, TRINE_F32, i, vload(from, dtype, at + i));
    if (i < n) vstoren(to, TRINE_F32, i, n - i, vloadn(from, dtype, at + i, n - i, 0));
}
INLINE void add_columns(float *to, const void *from, int64_t at, int n, trine_dtype dtype) {
    int i = 0;
    for (; i + VL <= n; i += VL) vstore(to, TRINE_F32, i, vload(to, TRINE_F32, i) + vload(from, dtype, at + i));
    if (i < n)
        vstoren(to, TRINE_F32, i, n - i, vloadn(to, TRINE_F32, i, n - i, 0) + vloadn(from, dtype, at + i, n - i, 0));
}
INLINE void write_columns(void *to, int64_t at, const float *from, int n, trine_dtype dtype) {
    int i = 0;
    for (; i + VL <= n; i += VL) vstore(to, dtype, at + i, vload(from, TRINE_F32, i));
    if (i < n) vstoren(to, dtype, at + i, n - i, vloadn(from, TRINE_F32, i, n - i, 0));
}

/* Columns c .. c+n-1 of a row, n <= COLUMNS. */
static void sum_piece(const job *j, int64_t row, int64_t c, int n) {
    const trine_tensor *dy = &j->call->tensor[EMBEDDING_BACKWARD_DY],
                       *dtable = &j->call->tensor[EMBEDDING_BACKWARD_DTABLE];
    const int64_t at = row * dtable->stride[0] + c, first = j->start[row], last = j->start[row + 1];
    float sum[COLUMNS];
    if (first == last || row == j->padding) {
        if (!j->accumulate)
            memset((char *)dtable->data + at * (int64_t)vsize(dtable->dtype), 0, (size_t)n * vsize(dtable->dtype));
        return;
    }
    if (j->accumulate)
        FOR_TYPE(dtable->dtype, read_columns, sum, dtable->data, at, n);
    else
        memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t i = first; i < last; i++)
        FOR_TYPE(dy->dtype, add_columns, sum, dy->data, j->token[i] * dy->stride[0] + c, n);
    FOR_TYPE(dtable->dtype, write_columns, dtable->data, at, sum, n);
}

/* The pieces of cost first .. last-1 of all columns. */
static void sum_pieces(const void *context, int64_t first, int64_t last, int thread) {
    const job *j = context;
    const int64_t v = j->v, n = j->n;
    (void)thread;
    const int64_t cost = cost_before(j, v);
    for (int64_t c = first / cost * COLUMNS; c < n && c / COLUMNS * cost < last; c += COLUMNS) {
        const int64_t before = c / COLUMNS * cost, end = c + COLUMNS < n ? c + COLUMNS : n;
        const int64_t from = first > before ? row_at(j, v, first - before) : 0;
        const int64_t to = last < before + cost ? row_at(j, v, last - before) : v;
        for (int64_t row = from; row < to; row++) sum_piece(j, row, c, (int)(end - c));
    }
}

static trine_status launch(const trine_call *call) {
    const trine_tensor *dy = &call->tensor[EMBEDDING_BACKWARD_DY], *ids = &call->tensor[EMBEDDING_BACKWARD_IDS],
                       *dtable = &call->tensor[EMBEDDING_BACKWARD_DTABLE];
    const int64_t v = dtable->shape[0], n = dtable->shape[1], t = ids->shape[0];
    const trine_status status = ids_check(call, ids, v);
    if (status != TRINE_OK) return status;
    int64_t *token = call->workspace, *start = token + t;
    sort_tokens(ids, v, token, start);
    const trine_embedding_backward_args *args = call->args;
    const job j = { call, token, start, v, n, args->padding_index_set ? args->padding_index : -1, args->accumulate };
    const int64_t pieces = cost_before(&j, v) * ((n + COLUMNS - 1) / COLUMNS);
    const int64_t bytes = (cost_before(&j, v))*n * (int64_t)trine_dtype_size(dy->dtype);
    cpu_shares(call, cpu_team(call, pieces, bytes), pieces, sum_pieces, &j);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_N, VL);
    trine_kernel_edge(edges, EMBEDDING_BACKWARD_DIM_N, COLUMNS);
}

CPU_KERNELS(embedding_backward) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
