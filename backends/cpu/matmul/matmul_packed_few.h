/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows with a packed b: each line is read once, where it is, of several groups of columns in turn, so
 * that memory has several streams to foresee. Sums are chains over k. */
#ifndef TRINE_CPU_MATMUL_PACKED_FEW_H
#define TRINE_CPU_MATMUL_PACKED_FEW_H

#include "matmul_lines.h"

/* Rows at most; sums in registers; bytes of lines that are asked for in advance. */
enum { PACKED_FEW = 4, PACKED_SUMS = 8, PACKED_AHEAD = 1024 };

typedef struct packed_few {
    product p;
    int64_t units, row_bytes; /* of a, unpacked: a matrix */
    int64_t batches;          /* matrices of it */
    int rows;                 /* with one that is multiplied in vain */
    int64_t columns, right;   /* of a task; tasks of a matrix */
    const char *x;
} packed_few;

static inline packed_few packed_few_of(const trine_call *call) {
    packed_few s = { .p = product_of(call), .x = call->workspace };
    const product *p = &s.p;
    s.rows = p->m < 3 ? (int)p->m : PACKED_FEW;
    s.units = cpu_round_up(divide_up(p->k, unit_depth(p->kind)), unit_lanes(p->kind));
    s.row_bytes = s.units * s.rows * unit_bytes(p->kind);
    s.batches = p->a.batch ? p->g : 1;
    s.columns = (int64_t)(PACKED_SUMS / (s.rows > 0 ? s.rows : 1)) * unit_lanes(p->kind);
    s.right = divide_up(p->n, s.columns);
    return s;
}

/* The sums of a line of `vectors` vectors, of which the first `count` units count, masked in the last by `mask`. */
INLINE void few_line(sum s[][PACKED_SUMS], sum *offset, const char *const *from, const char *x, int count, vi mask,
                     int rows, int vectors, trine_dtype dtype, unit_kind kind) {
    const int each = lines_deep(dtype) / unit_depth(kind), bytes = unit_bytes(kind);
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++) {
        vi y[4];
        lines_units(y, unit_load(from[j]), dtype, kind);
#pragma GCC unroll 4
        for (int i = 0; i < each; i++) {
            if (i >= count) break;
            if (i == count - 1) y[i] &= mask;
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                s[r][j] = sum_mac(s[r][j], unit_broadcast(x + (i * rows + r) * bytes, kind), y[i], kind);
            if (unit_unsigned(kind)) offset[j] = sum_mac(offset[j], viset((int)0x80808080), y[i], kind);
        }
    }
}

INLINE void few_columns(char *sums, const packed_few *f, const char *x, int64_t batch, int64_t column, int rows,
                        trine_dtype dtype, unit_kind kind) {
    const product *p = &f->p;
    const int vectors = PACKED_SUMS / rows, step = unit_depth(kind), deep = lines_deep(dtype), each = deep / step,
              lines = PACKED_DEPTH / deep, bytes = unit_bytes(kind), line = lines_bytes(dtype);
    const int64_t whole = p->k / deep, rest = p->k % deep, more = p->b.along - lines * line;
    const char *from[PACKED_SUMS];
    sum s[PACKED_FEW][PACKED_SUMS], offset[PACKED_SUMS];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++) {
        const int64_t c = column + j * unit_lanes(kind);
        from[j] = lines_at(&p->b, batch, c < p->n ? c : column, 0);
        offset[j] = (sum){ 0 };
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) s[r][j] = (sum){ 0 };
    }
    for (int64_t l = 0; l < whole; l++) {
        few_line(s, offset, from, x, each, viset(-1), rows, vectors, dtype, kind);
        const int64_t next = line + ((l + 1) % lines == 0 ? more : 0);
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++) {
            from[j] += next;
            __builtin_prefetch(from[j] + PACKED_AHEAD);
        }
        x += each * rows * bytes;
    }
    if (rest > 0) {
        const int last = (int)(rest % step), count = (int)divide_up(rest, step);
        const vi mask = viset(last ? word_first(last * (32 / step)) : -1);
        few_line(s, offset, from, x, count, mask, rows, vectors, dtype, kind);
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            if (unit_unsigned(kind)) s[r][j].i -= offset[j].i;
            unit_store(sums + (r * vectors + j) * VB, sum_vector(s[r][j], kind));
        }
}

INLINE void few_rows(char *sums, const packed_few *f, const char *x, int64_t batch, int64_t column, trine_dtype dtype,
                     unit_kind kind) {
    switch (f->rows) {
    case 1: few_columns(sums, f, x, batch, column, 1, dtype, kind); break;
    case 2: few_columns(sums, f, x, batch, column, 2, dtype, kind); break;
    default: few_columns(sums, f, x, batch, column, PACKED_FEW, dtype, kind); break;
    }
}

static void few_run(const packed_few *f, int64_t index) {
    const product *p = &f->p;
    const int64_t batch = index / f->right, column = index % f->right * f->columns,
                  columns = p->n - column < f->columns ? p->n - column : f->columns;
    const char *x = f->x + (f->batches > 1 ? batch : 0) * f->row_bytes;
    _Alignas(64) char sums[PACKED_SUMS * VB];
#define COLUMNS(dtype, kind) few_rows(sums, f, x, batch, column, dtype, kind)
    LINES_TYPES(p->b.dtype, COLUMNS);
#undef COLUMNS
    finish(&p->to, sums, f->columns, &(block_place){ batch, 0, column, p->m, columns });
}

/* Unpacks rows of a: unit by unit, of each all rows; what is beyond k and m is zero. */
static void few_unpack(const packed_few *f, char *to, int64_t batch) {
    const product *p = &f->p;
    const view *a = &p->a;
    const int side = unit_lanes(p->kind), step = unit_depth(p->kind), bytes = unit_bytes(p->kind);
    const int64_t size = unit_element(a->dtype);
    memset(to, 0, (size_t)f->row_bytes);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t u = 0; u < f->units; u += side) {
            const char *from = a->data + batch * a->batch + i * a->lane + u * step * a->along;
            const int64_t left = p->k - u * step, n = left < side * step ? left : side * step;
            char line[VB] = { 0 }, unpacked[VB];
            for (int64_t e = 0; e < n; e++) memcpy(line + e * size, from + e * a->along, (size_t)size);
#define ALONG(dtype, kind) \
    unit_store(unpacked, unit_along(line, kind, dtype) ^ viset(unit_unsigned(kind) ? (int)0x80808080 : 0))
            LINES_TYPES(a->dtype, ALONG);
#undef ALONG
            for (int e = 0; e < side; e++)
                memcpy(to + ((u + e) * f->rows + i) * bytes, unpacked + e * bytes, (size_t)bytes);
        }
}

static const char *few_refuse(const trine_call *call) {
    const char *reason = product_refuse(call);
    return reason ? reason : call->dim[PLACE(DIM_M)] > PACKED_FEW ? "more than 4 rows" : NULL;
}

static size_t few_workspace(const trine_call *call) {
    const packed_few f = packed_few_of(call);
    return (size_t)(f.batches * f.row_bytes);
}

static void few_edges(const trine_call *call, trine_kernel_edges *edges) {
    const packed_few f = packed_few_of(call);
    for (int rows = 1; rows <= PACKED_FEW; rows *= 2) trine_kernel_edge(edges, PLACE(DIM_M), rows);
    trine_kernel_edge(edges, PLACE(DIM_N), f.columns > 0 ? f.columns : 1);
    trine_kernel_edge(edges, PLACE(DIM_K), lines_deep(f.p.b.dtype));
    product_edges(edges, f.p.kind);
}

static void few_tasks(const void *context, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int64_t i = first; i < last; i++) few_run(context, i);
}

static trine_status few_launch(const trine_call *call) {
    const packed_few f = packed_few_of(call);
    for (int64_t batch = 0; batch < f.batches; batch++)
        few_unpack(&f, (char *)call->workspace + batch * f.row_bytes, batch);
    const int64_t tasks = f.p.g * f.right;
    cpu_shares(call, product_team(call, &f.p, tasks), tasks, few_tasks, &f);
    return TRINE_OK;
}

#endif
