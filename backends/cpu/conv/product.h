/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution on the CPU as a product of patches and weights: the weights are packed into panels once, then a task
 * has rows, which are positions, and columns, which are channels, of one group; it packs patches of a part of their
 * elements and multiplies panels tile by tile as matmul does. A gradient by x is such a product as well, of patches of
 * dy, for each residue of positions by the strides.
 *
 * The order of an element's sum follows from the elements of a patch and the level alone. */
#ifndef TRINE_CPU_CONV_PRODUCT_H
#define TRINE_CPU_CONV_PRODUCT_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/matmul/matmul_tile.h"
#include "patches.h"

/* A part of a patch is such that a panel of weights stays in L1; rows and columns of a task at most, and units that are
 * copied side by side at a time: a whole number of AMX's squares. */
enum { PART_UNITS = VB == 64 ? 256 : 384, TASK_ROWS = 96, TASK_COLUMNS = 256, CHUNK_UNITS = 64, AMX_STEP = 16 };

/* Where weights are: lanes are the columns of the product. Strides in bytes; tap t along an axis of the product is tap
 * first + t step of theirs. */
typedef struct conv_weights {
    const char *data;
    int64_t group, lane, channel, tap[3], first[3], step[3];
} conv_weights;

/* Where positions go, place first + i step along each axis. */
typedef struct conv_target {
    conv_view view;
    int64_t first[3], step[3];
} conv_target;

typedef struct conv_product {
    const trine_call *call;
    patches x;
    conv_weights w;
    conv_target y;
    const trine_tensor *bias; /* NULL: none */
    trine_dtype type;
    int64_t n, groups, lanes; /* images; columns of a group */
    unit_kind kind;
    int64_t units, part, parts; /* of a patch */
    int64_t rows;               /* positions of all images */
    int64_t high, wide;         /* rows and columns of a tile */
    int64_t columns, right, down;
    int64_t panel; /* bytes of the weights' panel of `wide` columns */
    int64_t packed_bytes, bias_bytes, x_bytes, sums_bytes, lines_bytes, slice;
    int team;
} conv_product;

typedef struct conv_task {
    const conv_product *a;
    char *x, *sums, *lines;
    int64_t group, row, rows, column, columns;
    conv_place place[TASK_ROWS + 2 * AMX_STEP];
    char *to[TASK_ROWS + 2 * AMX_STEP];
} conv_task;

static inline int64_t conv_up(int64_t x, int64_t by) { return (x + by - 1) / by; }
static inline int64_t conv_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Elements and units of a part of a patch. */
static inline int64_t conv_depth(const conv_product *a, int64_t part) {
    const int64_t step = unit_depth(a->kind);
    return conv_least(a->x.elements - part * a->part * step, a->part * step);
}
static inline int64_t conv_units(const conv_product *a, int64_t part) {
    const int64_t units = conv_up(conv_depth(a, part), unit_depth(a->kind));
    return tile_amx(a->kind) ? cpu_round_up(units, AMX_STEP) : units;
}

/* What follows from the rest: sizes of tasks and of what they need. */
static inline void conv_complete(conv_product *a) {
    const int threads = ((const cpu_queue *)a->call->queue)->threads;
    patches_complete(&a->x);
    a->kind = unit_of(a->type);
    a->high = tile_rows(a->kind), a->wide = tile_columns(a->kind);
    a->units = conv_up(a->x.elements, unit_depth(a->kind));
    a->part = cpu_round_up(conv_up(a->units, conv_up(a->units, PART_UNITS) + (a->units == 0)), AMX_STEP);
    a->parts = a->part > 0 ? conv_up(a->units, a->part) : 1;
    const int64_t last = conv_units(a, a->parts - 1);
    a->panel = ((a->parts - 1) * a->part + last) * a->wide * unit_bytes(a->kind);
    a->rows = a->n * conv_positions(a->x.axis);
    a->down = conv_up(a->rows, TASK_ROWS);
    a->columns = a->lanes > 0 ? cpu_round_up(conv_least(a->lanes, TASK_COLUMNS), a->wide) : a->wide;
    while (a->columns > 2 * a->wide && a->down * a->groups * conv_up(a->lanes, a->columns) < 2 * threads)
        a->columns = cpu_round_up(a->columns / 2, a->wide);
    a->right = conv_up(a->lanes, a->columns);
    const int64_t rows = cpu_round_up(TASK_ROWS, a->high), bytes = a->type == TRINE_F64 ? 8 : 4;
    a->packed_bytes = cpu_round_up(a->groups * conv_up(a->lanes, a->wide) * a->panel, 256);
    a->bias_bytes = a->bias ? cpu_round_up((a->groups * a->lanes + a->wide) * bytes, 256) : 0;
    a->x_bytes = cpu_round_up(conv_least(a->part, a->parts > 1 ? a->part : last) * rows * unit_bytes(a->kind), 64);
    a->sums_bytes = a->parts > 1 ? rows * a->columns * bytes : 0;
    const int64_t lanes = rows > a->wide ? rows : a->wide;
    a->lines_bytes = cpu_round_up(CHUNK_UNITS * unit_depth(a->kind) * lanes * a->x.size, 64);
    a->slice = cpu_round_up(a->x_bytes + a->sums_bytes + a->lines_bytes, 256);
    const double flops = 2.0 * (double)a->rows * (double)a->groups * (double)a->lanes * (double)a->x.elements,
                 written = (double)a->rows * (double)a->groups * (double)a->lanes * (double)a->x.size;
    a->team = cpu_team(a->call, a->down * a->groups * a->right, (int64_t)fmin(fmax(written, flops / 4), 0x1p62));
}

static inline size_t conv_product_bytes(const conv_product *a) {
    return (size_t)(a->packed_bytes + a->bias_bytes + a->team * a->slice);
}

/* ---------------------------------------------------------------------------------------------------------- packing */

/* Elements [first, last) of `lanes` columns of the weights: column by column, or element by element where neighbours in
 * memory are neighbours in column. */
static inline void weights_gather(const conv_product *a, int64_t group, int64_t lane, int64_t lanes, int64_t first,
                                  int64_t last, bool across, char *to) {
    const conv_weights *w = &a->w;
    const int64_t size = a->x.size, channels = a->x.channels, wide = a->x.axis[2].taps, high = a->x.axis[1].taps;
    const char *from = w->data + group * w->group + lane * w->lane;
    for (int64_t e = first, end; e < last; e = end) {
        const int64_t number = e / channels, channel = e % channels,
                      tap[3] = { number / (wide * high), number / wide % high, number % wide };
        end = conv_least(e - channel + channels, last);
        const char *line = from + channel * w->channel;
        for (int d = 0; d < 3; d++) line += (w->first[d] + tap[d] * w->step[d]) * w->tap[d];
        if (across)
            for (int64_t i = e; i < end; i++)
                conv_copy(to + (i - first) * lanes * size, line + (i - e) * w->channel, lanes, w->lane, size);
        else
            for (int64_t l = 0; l < lanes; l++)
                conv_copy(to + (l * (last - first) + e - first) * size, line + l * w->lane, end - e, w->channel, size);
    }
}

static inline view conv_lines(trine_dtype type, int64_t size, int64_t lanes, int64_t depth, bool across) {
    return (view){
        .dtype = type, .lane = across ? size : depth * size, .along = across ? lanes * size : size, .across = across
    };
}

/* Panels [first, last) of the weights. */
static inline void pack_weights(const void *context, int64_t first, int64_t last, int thread) {
    const conv_product *a = context;
    char *memory = (char *)a->call->workspace,
         *lines = memory + a->packed_bytes + a->bias_bytes + thread * a->slice + a->x_bytes + a->sums_bytes;
    const int64_t panels = conv_up(a->lanes, a->wide), step = unit_depth(a->kind), size = a->x.size;
    const bool across = a->w.channel != size && a->w.lane == size;
    for (int64_t i = first; i < last; i++) {
        const int64_t lane = i % panels * a->wide, lanes = conv_least(a->lanes - lane, a->wide);
        for (int64_t part = 0; part < a->parts; part++) {
            const int64_t start = part * a->part, units = conv_units(a, part), depth = conv_depth(a, part);
            for (int64_t u = 0; u < units; u += CHUNK_UNITS) {
                const int64_t some = conv_least(units - u, CHUNK_UNITS), begin = (start + u) * step,
                              there = conv_least(depth - u * step, some * step);
                const view v = conv_lines(a->type, size, lanes, there > 0 ? there : 0, across);
                if (there > 0) weights_gather(a, i / panels, lane, lanes, begin, begin + there, across, lines);
                panel_pack(memory + i * a->panel + (start + u) * a->wide * unit_bytes(a->kind), lines, &v, lanes, there,
                           some, false);
            }
        }
    }
}

static inline void pack_bias(const conv_product *a) {
    const trine_tensor *bias = a->bias;
    const int64_t count = a->groups * a->lanes;
    if (!bias) return;
    char *to = (char *)a->call->workspace + a->packed_bytes;
    memset(to, 0, (size_t)a->bias_bytes);
    for (int64_t k = 0; k < count; k++) {
        if (bias->dtype == TRINE_F64)
            ((double *)(void *)to)[k] = ((const double *)bias->data)[k * bias->stride[0]];
        else
            ((float *)(void *)to)[k] = sload(bias->data, bias->dtype, k * bias->stride[0]);
    }
}

/* The task's patches, of a part. */
static inline void pack_patches(const conv_task *t, int64_t part) {
    const conv_product *a = t->a;
    const int64_t step = unit_depth(a->kind), units = conv_units(a, part), depth = conv_depth(a, part);
    for (int64_t u = 0; u < units; u += CHUNK_UNITS) {
        const int64_t some = conv_least(units - u, CHUNK_UNITS), begin = (part * a->part + u) * step,
                      there = conv_least(depth - u * step, some * step);
        const view v = conv_lines(a->type, a->x.size, t->rows, there > 0 ? there : 0, a->x.across);
        if (there > 0) patches_gather(&a->x, t->place, t->rows, begin, begin + there, t->lines);
        for (int64_t i = 0; i < t->rows; i += a->high)
            panel_pack(t->x + (i * units + u * a->high) * unit_bytes(a->kind), t->lines + i * v.lane, &v, t->rows - i,
                       there, some, true);
    }
}

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

INLINE void conv_multiply(const conv_task *t, int64_t part, unit_kind kind) {
    const conv_product *a = t->a;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), units = conv_units(a, part),
                  tiles = a->columns / wide, panels = conv_up(a->lanes, wide);
    _Alignas(64) char scratch[TILE_BYTES];
    for (int64_t j = 0; j < t->columns; j += wide) {
        const char *w = (const char *)a->call->workspace + (t->group * panels + (t->column + j) / wide) * a->panel +
                        part * a->part * wide * unit_bytes(kind);
        for (int64_t i = 0; i < t->rows; i += high) {
            char *tile =
                a->parts > 1 ? t->sums + (i / high * tiles + j / wide) * high * wide * unit_bytes(kind) : scratch;
            tile_multiply(tile, t->x + i * units * unit_bytes(kind), w, units, part > 0, kind);
            if (part + 1 == a->parts) put_tile(t, tile, i, j);
        }
    }
}

static inline void conv_run_task(conv_task *t, int64_t index) {
    const conv_product *a = t->a;
    t->column = index % a->right * a->columns, t->columns = conv_least(a->lanes - t->column, a->columns);
    t->group = index / a->right % a->groups;
    t->row = index / (a->right * a->groups) * TASK_ROWS, t->rows = conv_least(a->rows - t->row, TASK_ROWS);
    patches_places(&a->x, t->row, t->rows, t->group, t->place);
    target_places(a, t->row, t->rows, t->group, t->to);
    for (int64_t part = 0; part < a->parts; part++) {
        pack_patches(t, part);
        if (a->kind == UNIT_F64)
            conv_multiply(t, part, UNIT_F64);
        else if (HAVE_DOTS && a->kind == UNIT_BF16)
            conv_multiply(t, part, UNIT_BF16);
        else
            conv_multiply(t, part, UNIT_F32);
    }
}

static inline void conv_run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const conv_product *a = context;
    char *memory = (char *)a->call->workspace + a->packed_bytes + a->bias_bytes + thread * a->slice;
    conv_task t = { .a = a, .x = memory, .sums = memory + a->x_bytes, .lines = memory + a->x_bytes + a->sums_bytes };
    tile_begin(a->kind);
    for (int64_t i = first; i < last; i++) conv_run_task(&t, i);
    tile_end(a->kind);
}

static inline void conv_product_run(const conv_product *a) {
    if (a->rows == 0 || a->groups == 0 || a->lanes == 0) return;
    pack_bias(a);
    cpu_tasks(a->call, a->team, a->groups * conv_up(a->lanes, a->wide), pack_weights, a);
    cpu_tasks(a->call, a->team, a->down * a->groups * a->right, conv_run_tasks, a);
}

#endif
