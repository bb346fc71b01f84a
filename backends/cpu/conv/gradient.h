/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a convolution's weights on the CPU as a product of dy and patches of x over positions: a task has
 * channels of dy and elements of patches, of one group and one slice of the positions. Slices' sums are added in their
 * order.
 *
 * The order of an element's sum follows from sizes and the level alone. */
#ifndef TRINE_CPU_CONV_GRADIENT_H
#define TRINE_CPU_CONV_GRADIENT_H

#include "depthwise.h"

/* Units of positions that are packed at a time; rows and columns of a task; slices, and positions of one at least. */
enum { GRADIENT_UNITS = 192, GRADIENT_ROWS = 192, GRADIENT_COLUMNS = 256, SLICES = 64, SLICE_POSITIONS = 512 };

/* Images whose channels lie apart are copied side by side before, for all threads, if they are of so many bytes at
 * most; larger ones are read as they are. */
enum { GRADIENT_READY_MOST = 256 << 20 };

/* x or dy: as it was, and what it is read as. */
typedef struct gradient_source {
    conv_view from;
    trine_dtype type;
    int64_t bytes; /* of the copy; 0: none */
} gradient_source;

typedef struct conv_gradient {
    const trine_call *call;
    patches x, dy;
    gradient_source x_source, dy_source;
    const trine_tensor *dweight;
    conv_view to;
    trine_dtype type;
    int64_t n, groups, rows, columns, positions; /* of a group's result: channels of dy, elements of patches */
    unit_kind kind;
    int64_t part, slices, slice_positions;
    int64_t high, wide, down, right, task_rows, task_columns;
    int64_t sums_bytes, dy_bytes, x_bytes, tile_bytes, lines_bytes, places_bytes, slice;
    int team;
} conv_gradient;

typedef struct gradient_task {
    const conv_gradient *a;
    char *dy, *x, *tiles, *lines;
    conv_place *x_places, *dy_places;
    int64_t number, group, row, rows, column, columns; /* number: of the slice */
    int64_t depth, units;
} gradient_task;

/* A power of two of slices, so that there are tasks for many threads. */
static inline int64_t slices_of(int64_t tasks, int64_t count, int64_t least) {
    int64_t slices = 1;
    while (slices < SLICES && tasks * slices < SLICES && count / (2 * slices) >= least) slices *= 2;
    return slices;
}

/* Channels by themselves are summed by depthwise_gradient.h, which reads any x. */
static inline bool gradient_single(const conv_gradient *a) {
    return a->x.channels == 1 && a->dy.channels == 1 && a->groups > 0 && a->type != TRINE_F64;
}

static inline void gradient_ready(const conv_gradient *a, patches *p, gradient_source *source) {
    const int64_t size = a->kind == UNIT_BF16 ? 2 : unit_bytes(a->kind), channels = a->groups * p->channels;
    conv_view dense;
    *source = (gradient_source){ p->from, a->type, 0 };
    const int64_t bytes = conv_dense(&dense, p->axis, channels, size);
    if (gradient_single(a) || p->from.channel == p->size || channels <= 1 || bytes <= 0 ||
        a->n > GRADIENT_READY_MOST / bytes)
        return;
    p->from = dense, p->size = size;
    source->type = a->kind == UNIT_F32 ? TRINE_F32 : a->type, source->bytes = cpu_round_up(a->n * bytes, 256);
}

static inline void gradient_complete(conv_gradient *a) {
    a->kind = unit_of(a->type);
    gradient_ready(a, &a->x, &a->x_source), gradient_ready(a, &a->dy, &a->dy_source);
    patches_complete(&a->x), patches_complete(&a->dy);
    const int64_t step = unit_depth(a->kind), bytes = a->type == TRINE_F64 ? 8 : 4;
    a->high = tile_rows(a->kind), a->wide = tile_columns(a->kind);
    a->rows = a->dy.channels, a->columns = a->x.elements, a->positions = a->n * conv_positions(a->x.axis);
    a->part = cpu_round_up(conv_least(conv_up(a->positions, step), GRADIENT_UNITS), AMX_STEP);
    a->task_rows = cpu_round_up(conv_least(a->rows, GRADIENT_ROWS), a->high);
    a->task_columns = cpu_round_up(conv_least(a->columns, GRADIENT_COLUMNS), a->wide);
    a->down = conv_up(a->rows, a->task_rows > 0 ? a->task_rows : 1);
    a->right = conv_up(a->columns, a->task_columns > 0 ? a->task_columns : 1);
    a->slices = slices_of(a->groups * a->down * a->right, a->positions, SLICE_POSITIONS);
    /* slices are the same for any number of threads; how a slice is split changes no sum */
    const int threads = ((const cpu_queue *)a->call->queue)->threads;
    int64_t tasks = a->groups * a->down * a->right;
    while (tasks > 0 && tasks * a->slices < 2 * threads &&
           (a->task_columns > 2 * a->wide || a->task_rows > 2 * a->high)) {
        if (a->task_columns >= a->task_rows || a->task_rows <= 2 * a->high)
            a->task_columns = cpu_round_up(conv_up(a->task_columns, 2), a->wide);
        else
            a->task_rows = cpu_round_up(conv_up(a->task_rows, 2), a->high);
        a->down = conv_up(a->rows, a->task_rows), a->right = conv_up(a->columns, a->task_columns);
        tasks = a->groups * a->down * a->right;
    }
    a->slice_positions = cpu_round_up(conv_up(a->positions, a->slices), a->part > 0 ? a->part * step : 1);
    a->sums_bytes = cpu_round_up(a->slices * a->groups * a->rows * a->columns * bytes, 256);
    a->dy_bytes = cpu_round_up(a->part * a->task_rows * unit_bytes(a->kind), 64);
    a->x_bytes = cpu_round_up(a->part * a->task_columns * unit_bytes(a->kind), 64);
    a->tile_bytes = cpu_round_up(a->task_rows * a->task_columns * bytes, 64);
    const int64_t lanes = a->task_rows > a->task_columns ? a->task_rows : a->task_columns;
    a->lines_bytes = cpu_round_up(CHUNK_UNITS * step * lanes * (a->x.size > a->dy.size ? a->x.size : a->dy.size), 64);
    a->places_bytes = cpu_round_up(a->part * step * (int64_t)sizeof(conv_place), 64);
    a->slice = cpu_round_up(a->dy_bytes + a->x_bytes + a->tile_bytes + a->lines_bytes + 2 * a->places_bytes, 256);
    const double flops = 2.0 * (double)a->positions * (double)a->groups * (double)a->rows * (double)a->columns;
    a->team = cpu_team(a->call, tasks * a->slices, (int64_t)fmin(flops / 4, 0x1p62));
}

static inline size_t gradient_bytes(const conv_gradient *a) {
    return (size_t)(a->sums_bytes + a->x_source.bytes + a->dy_source.bytes + a->team * a->slice);
}

/* Elements [first, first + lanes) of the part's patches, into panels of `wide` lanes. */
static inline void gradient_pack(const gradient_task *t, const patches *p, const conv_place *place, int64_t first,
                                 int64_t lanes, int64_t wide, char *to, bool is_dy) {
    const conv_gradient *a = t->a;
    const int64_t step = unit_depth(a->kind), size = p->size;
    for (int64_t u = 0; u < t->units; u += CHUNK_UNITS) {
        const int64_t some = conv_least(t->units - u, CHUNK_UNITS), left = conv_least(t->depth - u * step, some * step),
                      there = left > 0 ? left : 0;
        const view v = { .dtype = is_dy ? a->dy_source.type : a->x_source.type,
                         .lane = p->across ? there * size : size,
                         .along = p->across ? size : lanes * size,
                         .across = !p->across };
        if (there > 0) patches_gather(p, place + u * step, there, first, first + lanes, t->lines);
        for (int64_t j = 0; j < lanes; j += wide)
            panel_pack(to + (j * t->units + u * wide) * unit_bytes(a->kind), t->lines + j * v.lane, &v, lanes - j,
                       there, some, is_dy);
    }
}

INLINE void gradient_multiply(const gradient_task *t, bool begun, unit_kind kind) {
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), tiles = t->a->task_columns / wide,
                  bytes = unit_bytes(kind);
    for (int64_t j = 0; j < t->columns; j += wide)
        for (int64_t i = 0; i < t->rows; i += high)
            tile_multiply(t->tiles + (i / high * tiles + j / wide) * high * wide * bytes, t->dy + i * t->units * bytes,
                          t->x + j * t->units * bytes, t->units, begun, kind);
}

/* The task's sums to those of its slice. */
static inline void gradient_keep(const gradient_task *t) {
    const conv_gradient *a = t->a;
    const int64_t bytes = a->type == TRINE_F64 ? 8 : 4, tiles = a->task_columns / a->wide;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j += a->wide) {
            const int64_t row = (t->number * a->groups + t->group) * a->rows + t->row + i;
            memcpy((char *)a->call->workspace + (row * a->columns + t->column + j) * bytes,
                   t->tiles + ((i / a->high * tiles + j / a->wide) * a->high + i % a->high) * a->wide * bytes,
                   (size_t)(conv_least(t->columns - j, a->wide) * bytes));
        }
}

static inline void gradient_run_task(gradient_task *t, int64_t index) {
    const conv_gradient *a = t->a;
    const int64_t step = unit_depth(a->kind);
    t->column = index % a->right * a->task_columns, t->columns = conv_least(a->columns - t->column, a->task_columns);
    t->row = index / a->right % a->down * a->task_rows, t->rows = conv_least(a->rows - t->row, a->task_rows);
    t->group = index / (a->right * a->down) % a->groups, t->number = index / (a->right * a->down * a->groups);
    const int64_t from = conv_least(t->number * a->slice_positions, a->positions),
                  to = conv_least(from + a->slice_positions, a->positions);
    int64_t first = from;
    do {
        t->depth = conv_least(to - first, a->part * step), t->units = conv_up(t->depth, step);
        if (tile_amx(a->kind)) t->units = cpu_round_up(t->units, AMX_STEP);
        if (t->depth > 0) {
            patches_places(&a->x, first, t->depth, t->group, t->x_places);
            patches_places(&a->dy, first, t->depth, t->group, t->dy_places);
        }
        gradient_pack(t, &a->x, t->x_places, t->column, t->columns, a->wide, t->x, false);
        gradient_pack(t, &a->dy, t->dy_places, t->row, t->rows, a->high, t->dy, true);
        if (a->kind == UNIT_F64)
            gradient_multiply(t, first > from, UNIT_F64);
        else if (HAVE_DOTS && a->kind == UNIT_BF16)
            gradient_multiply(t, first > from, UNIT_BF16);
        else
            gradient_multiply(t, first > from, UNIT_F32);
        first += a->part * step;
    } while (first < to);
    gradient_keep(t);
}

static inline void gradient_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const conv_gradient *a = context;
    char *memory =
        (char *)a->call->workspace + a->sums_bytes + a->x_source.bytes + a->dy_source.bytes + thread * a->slice;
    gradient_task t = { .a = a, .dy = memory, .x = memory + a->dy_bytes };
    t.tiles = t.x + a->x_bytes, t.lines = t.tiles + a->tile_bytes;
    t.x_places = (conv_place *)(void *)(t.lines + a->lines_bytes);
    t.dy_places = (conv_place *)(void *)(t.lines + a->lines_bytes + a->places_bytes);
    tile_begin(a->kind);
    for (int64_t i = first; i < last; i++) gradient_run_task(&t, i);
    tile_end(a->kind);
}

/* Slices' sums of a channel of dy, in their order, to dweight. */
INLINE void gradient_put(const conv_gradient *a, int64_t k, trine_dtype T) {
    const float *sums = (const float *)a->call->workspace + k * a->columns;
    const int64_t apart = a->groups * a->rows * a->columns, channels = a->x.channels;
    const conv_axis *axis = a->x.axis;
    for (int64_t number = 0; number < conv_taps(axis); number++) {
        const int64_t at = number * channels;
        char *to = a->to.data + k * a->to.batch + number / (axis[1].taps * axis[2].taps) * a->to.axis[0] +
                   number / axis[2].taps % axis[1].taps * a->to.axis[1] + number % axis[2].taps * a->to.axis[2];
        for (int64_t c = 0; c < channels; c += VL) {
            const int n = (int)conv_least(channels - c, VL);
            vf sum = vzero();
            for (int64_t s = 0; s < a->slices; s++)
                sum += lanes_load((const char *)(sums + s * apart + at + c), 4, n, TRINE_F32);
            lanes_store(to + c * a->to.channel, a->to.channel, n, sum, T);
        }
    }
}

static inline void gradient_put_f64(const conv_gradient *a, int64_t k) {
    const double *sums = (const double *)a->call->workspace + k * a->columns;
    const int64_t apart = a->groups * a->rows * a->columns, channels = a->x.channels;
    const conv_axis *axis = a->x.axis;
    for (int64_t e = 0; e < a->columns; e++) {
        const int64_t number = e / channels;
        double sum = 0;
        for (int64_t s = 0; s < a->slices; s++) sum += sums[s * apart + e];
        *(double *)(void *)(a->to.data + k * a->to.batch + number / (axis[1].taps * axis[2].taps) * a->to.axis[0] +
                            number / axis[2].taps % axis[1].taps * a->to.axis[1] +
                            number % axis[2].taps * a->to.axis[2] + e % channels * a->to.channel) = sum;
    }
}

static inline void gradient_puts(const void *context, int64_t first, int64_t last, int thread) {
    const conv_gradient *a = context;
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        if (a->type == TRINE_F64)
            gradient_put_f64(a, k);
        else
            FOR_TYPE(a->type, gradient_put, a, k);
    }
}

static inline void gradient_copy_rows(const void *context, int64_t first, int64_t last, int thread) {
    const image_copy *copy = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) copy_row(copy, i);
}
static inline void gradient_copy(const conv_gradient *a, const patches *p, const gradient_source *source) {
    const image_copy copy = {
        source->from, p->from, { p->axis[0].in, p->axis[1].in, p->axis[2].in }, a->groups * p->channels,
        a->type,      a->kind
    };
    if (source->bytes > 0) cpu_shares(a->call, a->team, a->n * copy.in[0] * copy.in[1], gradient_copy_rows, &copy);
}

static inline void gradient_run(const conv_gradient *whole) {
    conv_gradient a = *whole;
    if (a.groups * a.rows * a.columns == 0) return;
    char *copies = (char *)a.call->workspace + a.sums_bytes;
    if (a.x_source.bytes > 0) a.x.from.data = copies;
    if (a.dy_source.bytes > 0) a.dy.from.data = copies + a.x_source.bytes;
    gradient_copy(&a, &a.x, &a.x_source), gradient_copy(&a, &a.dy, &a.dy_source);
    cpu_tasks(a.call, a.team, a.slices * a.groups * a.down * a.right, gradient_tasks, &a);
    cpu_shares(a.call, a.team, a.groups * a.rows, gradient_puts, &a);
}

#endif
