/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of all ranks added up in f32, as many at a time as have room in a half. The sums are made as all_reduce makes
 * them: in one step all of them by every rank, in two a part by each. */
#ifndef TRINE_CPU_COMM_ROW_SUMS_H
#define TRINE_CPU_COMM_ROW_SUMS_H

#include "sums.h"

enum { ONE_STEP = 1, TWO_STEPS = 2, STEP_NS = 4000 };

typedef struct row_sums {
    const trine_call *call;
    const trine_tensor *x;
    trine_dtype T;
    int ranks, rank;
    int64_t r, n;
    int64_t panel, part; /* rows of a panel; columns of a part: all of them, or a panel is one row */
    float *h;            /* the rows of a panel */
    /* the piece at hand: rows of a panel, and columns of these */
    int64_t row, rows, column, columns;
    sums sums; /* of its elements, one behind the other; to: floats */
} row_sums;

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Floats have room as well as elements, for the second step. */
static inline int64_t row_sums_room(const trine_call *call) { return copy_room(call, TRINE_F32, 1); }
static inline int64_t row_sums_panel(const trine_call *call, int64_t r, int64_t n) {
    const int64_t rows = n > 0 ? row_sums_room(call) / n : r;
    return least(rows > 0 ? rows : 1, r > 0 ? r : 1);
}

/* Of a rank's call; h: room for a panel. */
static inline row_sums row_sums_of(const trine_call *call, const trine_tensor *x, int64_t ranks, int64_t r, int64_t n,
                                   float *h) {
    return (row_sums){ .call = call,
                       .x = x,
                       .T = x->dtype,
                       .ranks = (int)ranks,
                       .rank = trine_cpu_group_rank(call),
                       .r = r,
                       .n = n,
                       .panel = row_sums_panel(call, r, n),
                       .part = n > 0 ? least(n, row_sums_room(call)) : 1,
                       .h = h,
                       .sums = { .T = x->dtype, .ranks = (int)ranks } };
}

static inline int64_t pieces_of(int64_t n) { return (n + SUM_PIECE - 1) / SUM_PIECE; }

/* The rows of x, one behind the other, to this rank's half. */
static void copy_pieces_in(const void *context, int64_t first, int64_t last, int thread) {
    const row_sums *b = context;
    const int64_t pieces = pieces_of(b->columns), width = (int64_t)trine_dtype_size(b->T);
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t i = k / pieces, at = k % pieces * SUM_PIECE, count = least(SUM_PIECE, b->columns - at);
        memcpy(b->sums.to + (i * b->columns + at) * width, row_at(b->x, b->row + i, b->column + at),
               (size_t)(count * width));
    }
}

INLINE void sum_floats(const sums *s, int64_t first, int64_t last, trine_dtype T) {
    int64_t i = first;
    for (; i + VL <= last; i += VL) vstore(s->to, TRINE_F32, i, sum_vector(s, i, VL, T, false));
    if (i < last) vstoren(s->to, TRINE_F32, i, (int)(last - i), sum_vector(s, i, (int)(last - i), T, false));
}

static void sum_some(const void *context, int64_t first, int64_t last, int thread) {
    const sums *s = context;
    (void)thread;
    FOR_TYPE(s->T, sum_floats, s, first * SUM_PIECE, least(last * SUM_PIECE, s->n));
}

static inline void add_up(const row_sums *b, const sums *s) {
    const int64_t pieces = pieces_of(s->n), bytes = s->n * (b->ranks * (int64_t)trine_dtype_size(b->T) + 4);
    cpu_shares(b->call, cpu_team(b->call, pieces, bytes), pieces, sum_some, s);
}

/* Elements of a rank's part, the last ones' less: whole lines. */
static inline int64_t part_of(const row_sums *b, int64_t count, int rank, int64_t *first_out) {
    const int64_t part = cpu_round_up((count + b->ranks - 1) / b->ranks, 64), first = least(rank * part, count);
    *first_out = first;
    return least(part, count - first);
}

static inline trine_status by_parts(const row_sums *b, int64_t count, float *to) {
    const int64_t width = (int64_t)trine_dtype_size(b->T);
    sums s = b->sums;
    int64_t first;
    s.n = part_of(b, count, b->rank, &first);
    for (int q = 0; q < b->ranks; q++) s.from[q] += first * width;
    trine_status status = trine_cpu_group_ready(b->call, &s.to);
    if (status != TRINE_OK) return status;
    add_up(b, &s);
    if ((status = trine_cpu_group_post(b->call, false, TWO_STEPS)) != TRINE_OK) return status;
    for (int q = 0; q < b->ranks; q++) {
        const int64_t part = part_of(b, count, q, &first);
        copy_row(b->call, (char *)(to + first), trine_cpu_group_half(b->call, q), part * 4);
    }
    return TRINE_OK;
}

/* The sums of the piece at hand, in its place of the panel. */
static inline trine_status row_sums_piece(row_sums *b, int way) {
    const int64_t count = b->rows * b->columns, items = b->rows * pieces_of(b->columns);
    float *to = b->h + b->column;
    trine_status status = trine_cpu_group_ready(b->call, &b->sums.to);
    if (status != TRINE_OK) return status;
    cpu_shares(b->call, cpu_team(b->call, items, count * (int64_t)trine_dtype_size(b->T)), items, copy_pieces_in, b);
    status = trine_cpu_group_post(b->call, b->row == 0 && b->column == 0, way);
    if (status != TRINE_OK || count == 0) return status;
    for (int q = 0; q < b->ranks; q++) b->sums.from[q] = trine_cpu_group_half(b->call, q);
    if (way == TWO_STEPS) return by_parts(b, count, to);
    b->sums.n = count;
    b->sums.to = (char *)to;
    add_up(b, &b->sums);
    return TRINE_OK;
}

/* Those of the panel at hand, whose first row is set. */
static inline trine_status row_sums_add(row_sums *b, int way) {
    b->rows = least(b->panel, b->r - b->row);
    for (b->column = 0; b->column == 0 || b->column < b->n; b->column += b->part) {
        b->columns = least(b->part, b->n - b->column);
        const trine_status status = row_sums_piece(b, way);
        if (status != TRINE_OK) return status;
    }
    return TRINE_OK;
}

/* A prediction that all ranks must have alike, as all_reduce's: the sums are floats in the second step. */
static inline double row_sums_seconds(const trine_call *call, trine_dtype T, int64_t ranks, double elements, int way) {
    const double width = (double)trine_dtype_size(T), steps = 1 + floor(elements / (double)row_sums_room(call));
    return 1e-10 * elements * (way == ONE_STEP ? (4 + (double)ranks) * width + 8 : 5 * width + 20) +
           1e-9 * STEP_NS * steps * way;
}

#endif
