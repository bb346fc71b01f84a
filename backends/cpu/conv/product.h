/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution on the CPU as a product of patches and weights: the weights are packed into panels once, then a task
 * has rows, which are positions, and columns, which are channels, of one group. A gradient by x is such a product as
 * well, of patches of dy, for each residue of positions by the strides.
 *
 * Patches are read where they are, run by run; what the tiles cannot read, other types and channels that lie apart, is
 * copied once for all threads before. For AMX the task copies its patches into squares.
 *
 * The order of an element's sum follows from the elements of a patch and the level alone. */
#ifndef TRINE_CPU_CONV_PRODUCT_H
#define TRINE_CPU_CONV_PRODUCT_H

#include "product_pack.h"

/* -------------------------------------------------------------------------------------------------------- finishing */

/* Rows of sums, `stride` apart, to where they belong, from column `column` of the group on. */
INLINE void put_rows(const conv_task *t, const char *tile, int64_t stride, int64_t row, int64_t rows, int64_t column,
                     int64_t columns, trine_dtype T) {
    const conv_product *a = t->a;
    const int64_t size = (int64_t)vsize(T), apart = a->y.view.channel;
    const float *bias = (const float *)(const void *)((const char *)a->call->workspace + a->packed_bytes) +
                        t->group * a->lanes + column,
                *sums = (const float *)(const void *)tile;
    if (apart != size) {
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < rows; i++)
                sstore(t->to[row + i] + (column + j) * apart, T, 0, sums[i * stride + j] + (a->bias ? bias[j] : 0));
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += VL) {
            const int part = (int)conv_least(columns - j, VL);
            vf x = *(const vf_any *)(sums + i * stride + j);
            if (a->bias) x += *(const vf_any *)(bias + j);
            if (part == VL)
                vstore(t->to[row + i], T, column + j, x);
            else
                vstoren(t->to[row + i], T, column + j, part, x);
        }
}

static inline void put_rows_f64(const conv_task *t, const char *tile, int64_t stride, int64_t row, int64_t rows,
                                int64_t column, int64_t columns) {
    const conv_product *a = t->a;
    const double *bias = (const double *)(const void *)((const char *)a->call->workspace + a->packed_bytes) +
                         t->group * a->lanes + column,
                 *sums = (const double *)(const void *)tile;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            *(double *)(void *)(t->to[row + i] + (column + j) * a->y.view.channel) =
                sums[i * stride + j] + (a->bias ? bias[j] : 0);
}

static inline void put_tile(const conv_task *t, const char *tile, int64_t row, int64_t column) {
    const conv_product *a = t->a;
    const int64_t rows = conv_least(t->rows - row, a->high), columns = conv_least(t->columns - column, a->wide);
    if (a->type == TRINE_F64)
        put_rows_f64(t, tile, a->wide, row, rows, t->column + column, columns);
    else
        FOR_TYPE(a->type, put_rows, t, tile, a->wide, row, rows, t->column + column, columns);
}

/* Where the task's positions go. */
static inline void target_places(const conv_product *a, int64_t first, int64_t count, int64_t group, char **to) {
    const conv_axis *x = a->x.axis;
    const conv_view *y = &a->y.view;
    for (int64_t i = 0; i < count; i++) {
        const int64_t number = first + i, w = number % x[2].positions, h = number / x[2].positions % x[1].positions,
                      d = number / (x[2].positions * x[1].positions) % x[0].positions;
        to[i] = y->data + number / conv_positions(x) * y->batch + group * a->lanes * y->channel +
                (a->y.first[0] + d * a->y.step[0]) * y->axis[0] + (a->y.first[1] + h * a->y.step[1]) * y->axis[1] +
                (a->y.first[2] + w * a->y.step[2]) * y->axis[2];
    }
}

/* ------------------------------------------------------------------------------------------------------ multiplying */

/* tile = [tile +] the runs of the tile's rows times a panel; `apart`: pointers from one run to the next. */
INLINE void rows_multiply(char *tile, const char *const *table, int64_t apart, const int64_t *lengths, int64_t runs,
                          const char *b, bool accumulate, unit_kind kind) {
    sum s[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < VECTORS; j++) {
            s[i][j] = (sum){ 0 };
            if (accumulate) __builtin_prefetch(tile + (i * VECTORS + j) * VB);
        }
    for (int64_t r = 0; r < runs; r++, table += apart) {
        const char *from[ROWS];
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++) from[i] = table[i];
        const int64_t bytes = lengths[r] * unit_bytes(kind);
#pragma GCC unroll 4
        for (int64_t u = 0; u < bytes; u += unit_bytes(kind), b += VECTORS * VB) {
            vi x[VECTORS];
#pragma GCC unroll 4
            for (int j = 0; j < VECTORS; j++) x[j] = unit_load(b + j * VB);
#pragma GCC unroll 16
            for (int i = 0; i < ROWS; i++) {
                const vi y = unit_broadcast(from[i] + u, kind);
#pragma GCC unroll 4
                for (int j = 0; j < VECTORS; j++) s[i][j] = sum_mac(s[i][j], y, x[j], kind);
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < VECTORS; j++) {
            char *at = tile + (i * VECTORS + j) * VB;
            if (accumulate) s[i][j] = sum_add(s[i][j], unit_load(at), kind);
            unit_store(at, sum_vector(s[i][j], kind));
        }
}

INLINE void conv_multiply(const conv_task *t, int64_t part, int64_t runs, unit_kind kind) {
    const conv_product *a = t->a;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), units = conv_units(a, part),
                  tiles = a->tall / high, tile_bytes = high * wide * unit_bytes(kind), panels = conv_up(a->lanes, wide);
    _Alignas(64) char scratch[TILE_BYTES];
    for (int64_t j = 0; j < t->columns; j += wide) {
        const char *w = (const char *)a->call->workspace + (t->group * panels + (t->column + j) / wide) * a->panel +
                        part * a->part * wide * unit_bytes(kind);
        for (int64_t i = 0; i < t->rows; i += high) {
            char *tile = a->parts > 1 ? t->sums + (j / wide * tiles + i / high) * tile_bytes : scratch;
            if (tile_amx(kind)) {
                for (int64_t at = 0; part > 0 && at < tile_bytes; at += 64) __builtin_prefetch(tile + tile_bytes + at);
                tile_multiply(tile, t->squares + i * units * unit_bytes(kind), w, units, part > 0, kind);
            } else {
                rows_multiply(tile, t->table + i, a->tall, t->lengths, runs, w, part > 0, kind);
            }
            if (part + 1 == a->parts) put_tile(t, tile, i, j);
        }
    }
}

static inline void conv_run_task(conv_task *t, int64_t index) {
    const conv_product *a = t->a;
    t->column = index % a->right * a->columns, t->columns = conv_least(a->lanes - t->column, a->columns);
    t->group = index / a->right % a->groups;
    t->row = index / (a->right * a->groups) * a->tall, t->rows = conv_least(a->rows - t->row, a->tall);
    patches_places(&a->x, t->row, t->rows, t->group, t->place);
    target_places(a, t->row, t->rows, t->group, t->to);
    for (int64_t part = 0; part < a->parts; part++) {
        const int64_t runs = rows_set(t, part);
        if (tile_amx(a->kind)) squares_set(t, part, runs);
        if (a->kind == UNIT_F64)
            conv_multiply(t, part, runs, UNIT_F64);
        else if (HAVE_DOTS && a->kind == UNIT_BF16)
            conv_multiply(t, part, runs, UNIT_BF16);
        else
            conv_multiply(t, part, runs, UNIT_F32);
    }
}

static inline void conv_run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const conv_product *a = context;
    char *memory = conv_slice(a, thread);
    conv_task t = { .a = a, .x = memory, .sums = memory + a->x_bytes };
    t.table = (const char **)(void *)(t.sums + a->sums_bytes);
    t.lengths = (int64_t *)(void *)(t.table + a->runs * a->tall);
    t.squares = t.sums + a->sums_bytes + a->table_bytes;
    tile_begin(a->kind);
    for (int64_t i = first; i < last; i++) conv_run_task(&t, i);
    tile_end(a->kind);
}

static inline void conv_copy_rows(const void *context, int64_t first, int64_t last, int thread) {
    const conv_product *a = context;
    const conv_axis *axis = a->x.axis;
    const image_copy copy = { a->source, a->x.from, { axis[0].in, axis[1].in, axis[2].in }, a->groups * a->x.channels,
                              a->type,   a->kind };
    (void)thread;
    for (int64_t i = first; i < last; i++) copy_row(&copy, i);
}

/* Panels of weights, and for the first images the rows of x that are copied. */
static inline void conv_begin(const void *context, int64_t first, int64_t last, int thread) {
    const conv_product *a = context;
    const int64_t panels = a->groups * conv_up(a->lanes, a->wide);
    for (int64_t i = first; i < last; i++) {
        if (i < panels)
            pack_weights(a, i, thread);
        else
            conv_copy_rows(a, i - panels, i - panels + 1, thread);
    }
}
static inline void conv_product_run(const conv_product *whole) {
    conv_product a = *whole;
    if (a.rows == 0 || a.groups == 0 || a.lanes == 0) return;
    if (a.ready) a.x.from.data = (char *)a.call->workspace + a.packed_bytes + a.bias_bytes;
    pack_bias(&a);
    for (int64_t image = 0; image < a.n; image += whole->images) {
        a.images = conv_least(a.n - image, whole->images);
        a.rows = a.images * conv_positions(a.x.axis), a.down = conv_up(a.rows, a.tall);
        const int64_t copies = a.ready ? a.images * a.x.axis[0].in * a.x.axis[1].in : 0;
        if (image == 0)
            cpu_tasks(a.call, a.team, a.groups * conv_up(a.lanes, a.wide) + copies, conv_begin, &a);
        else
            cpu_tasks(a.call, a.team, copies, conv_copy_rows, &a);
        cpu_tasks(a.call, a.team, a.down * a.groups * a.right, conv_run_tasks, &a);
        a.source.data += a.images * a.source.batch, a.y.view.data += a.images * a.y.view.batch;
    }
}

#endif
