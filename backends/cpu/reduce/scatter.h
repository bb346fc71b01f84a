/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are added where an index says, on the CPU: what embedding_backward and scatter_add_rows share. The tokens,
 * which have a row each, are sorted by where it goes, then what goes to one row is summed in the order of the tokens.
 *
 * The work is a list of pieces, a row of y by COLUMNS columns each, in the order of columns, then rows; threads take
 * parts of equal cost. No sum is ever split, so that neither the number of threads nor the parts show in the result. */
#ifndef TRINE_CPU_SCATTER_H
#define TRINE_CPU_SCATTER_H

#include "ids.h"
#include "backends/cpu/core/vec.h"

enum { COLUMNS = 512 };

typedef struct scatter {
    const trine_tensor *x, *ids, *weight, *y; /* weight: NULL if there is none */
    int64_t padding;                          /* row to which nothing is added; -1: none */
    bool accumulate;
    int64_t m, n; /* rows and columns of y */
    const int64_t *token, *start;
} scatter;

/* Workspace: tokens in the order of their rows; `start` of each row therein, and the end. */
static inline size_t scatter_workspace(int64_t tokens, int64_t rows) {
    return (size_t)(tokens + rows + 1) * sizeof(int64_t);
}

/* A stable counting sort; ids out of range are left out. */
static inline void sort_tokens(const trine_tensor *ids, int64_t m, int64_t *token, int64_t *start) {
    const int64_t t = ids->shape[0];
    memset(start, 0, (size_t)(m + 1) * sizeof *start);
    for (int64_t i = 0; i < t; i++)
        if ((uint64_t)id_at(ids, i) < (uint64_t)m) start[id_at(ids, i)]++;
    int64_t sum = 0;
    for (int64_t row = 0; row <= m; row++) start[row] = sum += start[row]; /* ends */
    for (int64_t i = t - 1; i >= 0; i--)
        if ((uint64_t)id_at(ids, i) < (uint64_t)m) token[--start[id_at(ids, i)]] = i;
}

/* Cost of the rows before `row`, in rows read or written. */
static inline int64_t cost_before(const scatter *s, int64_t row) { return s->start[row] + (s->accumulate ? 0 : row); }

/* The first row that has `cost` or more before it. */
static inline int64_t row_at(const scatter *s, int64_t cost) {
    int64_t low = 0, high = s->m;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (cost_before(s, middle) < cost)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The loops over the columns of a piece: to[i] = from[i], += it, or += it times a weight. */
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
INLINE void add_weighted(float *to, const void *from, int64_t at, int n, float weight, trine_dtype dtype) {
    const vf w = vset(weight);
    int i = 0;
    for (; i + VL <= n; i += VL) vstore(to, TRINE_F32, i, vfma(vload(from, dtype, at + i), w, vload(to, TRINE_F32, i)));
    if (i < n)
        vstoren(to, TRINE_F32, i, n - i,
                vfma(vloadn(from, dtype, at + i, n - i, 0), w, vloadn(to, TRINE_F32, i, n - i, 0)));
}
INLINE void write_columns(void *to, int64_t at, const float *from, int n, trine_dtype dtype) {
    int i = 0;
    for (; i + VL <= n; i += VL) vstore(to, dtype, at + i, vload(from, TRINE_F32, i));
    if (i < n) vstoren(to, dtype, at + i, n - i, vloadn(from, TRINE_F32, i, n - i, 0));
}

/* Columns c .. c+n-1 of a row, n <= COLUMNS. */
static inline void sum_piece(const scatter *s, int64_t row, int64_t c, int n) {
    const trine_tensor *x = s->x, *y = s->y;
    const int64_t at = row * y->stride[0] + c, first = s->start[row], last = s->start[row + 1];
    float sum[COLUMNS];
    if (first == last || row == s->padding) {
        if (!s->accumulate) memset((char *)y->data + at * (int64_t)vsize(y->dtype), 0, (size_t)n * vsize(y->dtype));
        return;
    }
    if (s->accumulate)
        FOR_TYPE(y->dtype, read_columns, sum, y->data, at, n);
    else
        memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t i = first; i < last; i++) {
        const int64_t from = s->token[i] * x->stride[0] + c;
        if (s->weight)
            FOR_TYPE(x->dtype, add_weighted, sum, x->data, from, n, ((const float *)s->weight->data)[s->token[i]]);
        else
            FOR_TYPE(x->dtype, add_columns, sum, x->data, from, n);
    }
    FOR_TYPE(y->dtype, write_columns, y->data, at, sum, n);
}

/* The pieces of cost first .. last-1 of all columns. */
static inline void sum_pieces(const void *context, int64_t first, int64_t last, int thread) {
    const scatter *s = context;
    const int64_t m = s->m, n = s->n, cost = cost_before(s, m);
    (void)thread;
    for (int64_t c = first / cost * COLUMNS; c < n && c / COLUMNS * cost < last; c += COLUMNS) {
        const int64_t before = c / COLUMNS * cost, end = c + COLUMNS < n ? c + COLUMNS : n;
        const int64_t from = first > before ? row_at(s, first - before) : 0;
        const int64_t to = last < before + cost ? row_at(s, last - before) : m;
        for (int64_t row = from; row < to; row++) sum_piece(s, row, c, (int)(end - c));
    }
}

static inline void scatter_run(const trine_call *call, scatter s) {
    int64_t *token = call->workspace, *start = token + s.ids->shape[0];
    s.m = s.y->shape[0], s.n = s.y->shape[1], s.token = token, s.start = start;
    sort_tokens(s.ids, s.m, token, start);
    const int64_t cost = cost_before(&s, s.m), pieces = cost * ((s.n + COLUMNS - 1) / COLUMNS);
    cpu_shares(call, cpu_team(call, pieces, cost * s.n * (int64_t)trine_dtype_size(s.x->dtype)), pieces, sum_pieces,
               &s);
}

static inline void scatter_edges(trine_kernel_edges *edges, int symbol) {
    trine_kernel_edge(edges, symbol, VL);
    trine_kernel_edge(edges, symbol, COLUMNS);
}

#endif
