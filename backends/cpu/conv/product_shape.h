/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution on the CPU as a product: what it is of, and how it is split into parts and tasks. */
#ifndef TRINE_CPU_CONV_PRODUCT_SHAPE_H
#define TRINE_CPU_CONV_PRODUCT_SHAPE_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/matmul/matmul_tile.h"
#include "patches.h"

/* A part of a patch is such that a panel of weights stays in L1; rows and columns of a task at most; units of weights
 * that are gathered at a time, a whole number of AMX's squares; elements of a run below which patches are copied, for a
 * run has a pointer for each row; and bytes of images that are copied before the tasks, if there are several. */
enum {
    PART_UNITS = VB == 64 ? 256 : 384,
    PART_UNITS_AMX = 128,
    TASK_ROWS = 96,
    TASK_COLUMNS = 256,
    CHUNK_UNITS = 64,
    AMX_STEP = 16,
    RUN_LEAST = 8,
    READY_MOST = 32 << 20
};

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
    bool ready; /* x is of copies of what `source` has, `images` at a time */
    conv_view source;
    int64_t images;
    bool copied;                        /* each task copies its patches */
    int64_t units, part, parts;         /* of a patch */
    int64_t rows;                       /* positions of the images at a time */
    int64_t high, wide;                 /* rows and columns of a tile */
    int64_t tall, columns, right, down; /* rows and columns of a task; tasks */
    int64_t runs, line;                 /* of a part, at most; bytes of its copy */
    int64_t panel;                      /* bytes of the weights' panel of `wide` columns */
    int64_t packed_bytes, bias_bytes, ready_bytes, x_bytes, sums_bytes, table_bytes, squares_bytes, lines_bytes, slice;
    int team;
} conv_product;

typedef struct conv_task {
    const conv_product *a;
    char *x, *sums, *squares;
    const char **table; /* for each run, where it is of each row */
    int64_t *lengths;   /* of the runs, in units */
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
static inline int64_t part_units_of(unit_kind kind) { return tile_amx(kind) ? PART_UNITS_AMX : PART_UNITS; }

/* Channels by themselves are summed by depthwise.h, which reads any x. */
static inline bool conv_single(const conv_product *a) {
    return a->x.channels == 1 && a->lanes == 1 && a->groups > 0 && a->type != TRINE_F64;
}

/* The layout of a copy; returns bytes of an image. */
static inline int64_t conv_dense(conv_view *v, const conv_axis *axis, int64_t channels, int64_t size) {
    *v = (conv_view){ .channel = size };
    int64_t bytes = channels * size;
    for (int d = 2; d >= 0; d--) v->axis[d] = bytes, bytes *= axis[d].in;
    v->batch = bytes;
    return bytes;
}

/* Do tiles read x as it is? If not, it is read as a copy: channels side by side, of the units' type. */
static inline void conv_source(conv_product *a) {
    patches *x = &a->x;
    const int64_t size = a->kind == UNIT_BF16 ? 2 : unit_bytes(a->kind), channels = a->groups * x->channels;
    a->source = x->from, a->images = a->n;
    a->ready = !conv_single(a) && (x->size != size || (x->channels > 1 && x->from.channel != size));
    if (a->ready) {
        const int64_t bytes = conv_dense(&x->from, x->axis, channels, size);
        x->size = size;
        if (bytes > 0) a->images = conv_least(a->n, READY_MOST / bytes > 1 ? READY_MOST / bytes : 1);
        a->ready_bytes = cpu_round_up(a->images * bytes, 256);
    }
    patches_complete(x);
    /* 14 rows that lie in one set of L1 are too many */
    const bool far = VB == 64 && x->from.axis[2] * x->axis[2].step % 4096 == 0;
    a->copied = x->run < RUN_LEAST || (far && !tile_amx(a->kind)) || (a->kind == UNIT_BF16 && x->run % 2 != 0);
}

/* Splits rows and columns into tasks such that the last thread is done soonest. A row costs as much as so many columns
 * besides, for its patches, and a column as so many rows, for its weights. */
static inline void conv_split(conv_product *a) {
    const int threads = ((const cpu_queue *)a->call->queue)->threads;
    const bool amx = tile_amx(a->kind);
    const double row = amx ? 48 : a->copied ? 12 : 2, column = amx ? 32 : 8;
    const int64_t tiles_down = conv_up(a->rows + (a->rows == 0), a->high),
                  tiles_right = conv_up(a->lanes + (a->lanes == 0), a->wide), tallest = TASK_ROWS / a->high;
    double least = INFINITY;
    a->tall = a->high, a->columns = a->wide;
    for (int64_t down = conv_up(tiles_down, tallest); down <= tiles_down; down++) {
        const int64_t tall = conv_up(tiles_down, down) * a->high, blocks = conv_up(a->rows, tall) * a->groups;
        bool more = false;
        for (int64_t right = conv_up(tiles_right * a->wide, TASK_COLUMNS); right <= tiles_right; right++) {
            const int64_t columns = conv_up(tiles_right, right) * a->wide, tasks = blocks * conv_up(a->lanes, columns);
            const double time = (double)conv_up(tasks, threads) *
                                ((double)tall * (double)columns + row * (double)tall + column * (double)columns);
            if (time < least) least = time, a->tall = tall, a->columns = columns;
            if (tasks >= 4 * threads || threads == 1) break;
            more = true;
        }
        if (!more) break;
    }
    a->down = conv_up(a->rows, a->tall), a->right = conv_up(a->lanes, a->columns);
}

/* What follows from the rest: sizes of tasks and of what they need. */
static inline void conv_complete(conv_product *a) {
    a->kind = unit_of(a->type);
    conv_source(a);
    const int64_t step = unit_depth(a->kind), bytes = unit_bytes(a->kind), most = part_units_of(a->kind);
    a->high = tile_rows(a->kind), a->wide = tile_columns(a->kind);
    a->units = conv_up(a->x.elements, step);
    a->part = cpu_round_up(conv_up(a->units, conv_up(a->units, most) + (a->units == 0)), AMX_STEP);
    a->parts = a->part > 0 ? conv_up(a->units, a->part) : 1;
    const int64_t last = conv_units(a, a->parts - 1), one = a->parts > 1 ? a->part : last;
    a->panel = ((a->parts - 1) * a->part + last) * a->wide * bytes;
    a->rows = a->images * conv_positions(a->x.axis);
    conv_split(a);
    a->runs = a->copied ? 1 : one * step / a->x.run + 2;
    a->packed_bytes = cpu_round_up(a->groups * conv_up(a->lanes, a->wide) * a->panel, 256);
    a->bias_bytes = a->bias ? cpu_round_up((a->groups * a->lanes + a->wide) * bytes, 256) : 0;
    a->line = one * bytes;
    a->x_bytes = a->copied || a->x.merged ? cpu_round_up(a->line * a->tall, 64) : 0;
    a->sums_bytes = a->parts > 1 ? a->tall * a->columns * bytes : 0;
    a->table_bytes = cpu_round_up(a->runs * (a->tall + 1) * 8, 64);
    a->squares_bytes = tile_amx(a->kind) ? one * a->tall * bytes : 0;
    a->lines_bytes = cpu_round_up(CHUNK_UNITS * step * a->wide * (int64_t)trine_dtype_size(a->type), 64);
    a->slice = cpu_round_up(a->x_bytes + a->sums_bytes + a->table_bytes + a->squares_bytes + a->lines_bytes, 256);
    const double flops = 2.0 * (double)a->rows * (double)a->groups * (double)a->lanes * (double)a->x.elements,
                 written = (double)a->rows * (double)a->groups * (double)a->lanes * (double)a->x.size;
    a->team = cpu_team(a->call, a->down * a->groups * a->right, (int64_t)fmin(fmax(written, flops / 4), 0x1p62));
}

static inline size_t conv_product_bytes(const conv_product *a) {
    return (size_t)(a->packed_bytes + a->bias_bytes + a->ready_bytes + a->team * a->slice);
}

static inline char *conv_slice(const conv_product *a, int thread) {
    return (char *)a->call->workspace + a->packed_bytes + a->bias_bytes + a->ready_bytes + thread * a->slice;
}

#endif
