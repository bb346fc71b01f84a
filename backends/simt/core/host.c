/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of device kernels have in common: walks and rows. */
#include <string.h>

#include "host.h"

#include "columns.h"

simt_divisor simt_divisor_of(int64_t by) {
    int bits = 0;
    while (bits < 31 && (int64_t)1 << bits < by) bits++;
    if (by > (int64_t)1 << 31) return (simt_divisor){ .by = by }; /* 0 times */
    return (simt_divisor){ .by = by,
                           .multiplier = (uint32_t)((((uint64_t)1 << (31 + bits)) + (uint64_t)by - 1) / (uint64_t)by),
                           .shift = 31 + bits };
}

/* ------------------------------------------------------------------------------------------------------------- walk */

/* The tensors of a walk by their places in it; NULL: absent. */
typedef struct walked {
    const trine_tensor *tensor[SIMT_WALK_TENSORS];
    bool broadcast[SIMT_WALK_TENSORS]; /* may be */
} walked;

/* The merged dimensions, outermost first. */
typedef struct merged {
    int rank;
    int64_t shape[SIMT_WALK_RANK], stride[SIMT_WALK_TENSORS][SIMT_WALK_RANK];
} merged;

/* Can dimension d, of `length`, be one with the last of the merged ones? */
static bool merges(const merged *m, const walked *all, int d, int64_t length) {
    for (int t = 0; t < SIMT_WALK_TENSORS; t++)
        if (all->tensor[t] && m->stride[t][m->rank - 1] != all->tensor[t]->stride[d] * length) return false;
    return true;
}

static merged merge(const walked *all, const trine_tensor *shape) {
    merged m = { 0 };
    for (int d = 0; d < shape->rank; d++) {
        const int64_t length = shape->shape[d];
        if (length == 1) continue;
        const bool one = m.rank > 0 && merges(&m, all, d, length);
        m.rank += !one;
        m.shape[m.rank - 1] = one ? m.shape[m.rank - 1] * length : length;
        for (int t = 0; t < SIMT_WALK_TENSORS; t++)
            if (all->tensor[t]) m.stride[t][m.rank - 1] = all->tensor[t]->stride[d];
    }
    if (m.rank == 0) m.shape[m.rank++] = 1;
    return m;
}

/* Can rows of a tensor be read in vectors of `length`: contiguous, or broadcast where the op expects it, and aligned to
 * 16 bytes or to the vector? */
static bool vectors(const walked *all, int t, const int64_t *stride, int inner, int64_t length) {
    const trine_tensor *tensor = all->tensor[t];
    const int64_t size = (int64_t)trine_dtype_size(tensor->dtype), vector = length * size,
                  align = vector < 16 ? vector : 16;
    if (stride[inner] == 0) return all->broadcast[t];
    if (stride[inner] != 1 || (uintptr_t)tensor->data % (uintptr_t)align != 0) return false;
    for (int d = 0; d < inner; d++)
        if (stride[d] * size % align != 0) return false;
    return true;
}

/* Elements of a unit that is 16 bytes of the output at most. */
static int walk_length(const trine_tensor *output) { return trine_dtype_size(output->dtype) > 2 ? 4 : 8; }

static simt_walk walk_over(const walked *all, const trine_tensor *output) {
    const merged m = merge(all, output);
    const int inner = m.rank - 1, pad = SIMT_WALK_RANK - m.rank;
    simt_walk w = { .n = m.shape[inner], .length = walk_length(output) };
    bool wide = w.n > 1;
    for (int t = 0; t < SIMT_WALK_TENSORS; t++) {
        if (!all->tensor[t]) continue;
        w.data[t] = all->tensor[t]->data;
        w.step[t] = m.stride[t][inner];
        memcpy(&w.stride[t][pad], m.stride[t], sizeof(int64_t) * (size_t)inner);
        wide = wide && vectors(all, t, m.stride[t], inner, w.length);
    }
    if (!wide) w.length = 1;
    w.units = simt_blocks(w.n, w.length);
    w.row_units = simt_divisor_of(w.units);
    for (int d = 0; d < SIMT_WALK_RANK - 1; d++) {
        const int64_t length = d < pad ? 1 : m.shape[d - pad];
        w.shape[d] = simt_divisor_of(length);
        w.units *= length;
    }
    return w;
}

simt_walk simt_walk_of(const trine_call *call, uint32_t set, int output) {
    walked all = { 0 };
    for (int t = 0; t < SIMT_WALK_TENSORS; t++) {
        if (!(set >> t & 1)) continue;
        all.tensor[t] = &call->tensor[t];
        all.broadcast[t] = call->plan->tensor[t].spec->flags & BROADCAST;
    }
    simt_walk w = walk_over(&all, &call->tensor[output]);
    if (set != 0) w.ahead = simt_ahead_of(call, __builtin_ctz(set));
    return w;
}

simt_walk simt_walk_between(const trine_tensor *from, const trine_tensor *to) {
    return walk_over(&(walked){ .tensor = { [SIMT_WALK_FROM] = from, [SIMT_WALK_TO] = to } }, to);
}

static int output_of(const trine_call *call) {
    int output = 0;
    while (!(call->plan->tensor[output].spec->flags & OUT)) output++;
    return output;
}

void simt_walk_edges(const trine_call *call, trine_kernel_edges *edges) {
    const trine_plan_tensor *first = &call->plan->tensor[0];
    const int symbol = first->dim[first->rank - 1].symbol, length = walk_length(&call->tensor[output_of(call)]);
    trine_kernel_edge(edges, symbol, length);
    trine_kernel_edge(edges, symbol, SIMT_THREADS);
    trine_kernel_edge(edges, symbol, (int64_t)SIMT_THREADS * length);
}

static trine_status walk_launch(const trine_call *call) {
    struct {
        simt_walk walk;
        unsigned char args[sizeof call->storage];
    } params;
    simt_function function = { 0 };
    if (call->plan->tensors > SIMT_WALK_TENSORS || call->plan->types > SIMT_MAX_TYPES)
        return call->host->error(TRINE_ERR_INTERNAL, "%s: a walk has room for %d tensors of %d types",
                                 call->plan->spec->name, SIMT_WALK_TENSORS, SIMT_MAX_TYPES);
    params.walk = simt_walk_of(call, call->present, output_of(call));
    memcpy(params.args, call->args, call->plan->spec->args_size);
    memcpy(function.type, call->type, sizeof *call->type * (size_t)call->plan->types);
    return simt_launch(call, &function, simt_blocks(params.walk.units, SIMT_THREADS), SIMT_THREADS, &params,
                       sizeof params.walk + call->plan->spec->args_size);
}

const trine_kernel simt_walk_kernels[] = { { .name = SIMT_NAME, .launch = walk_launch, .edges = simt_walk_edges },
                                           { 0 } };

/* ------------------------------------------------------------------------------------------------------------- rows */

bool simt_aligned(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    const int64_t size = (int64_t)trine_dtype_size(t->dtype);
    if (!simt_present(call, tensor)) return true;
    bool aligned = (uintptr_t)t->data % 16 == 0;
    for (int d = 0; d < t->rank - 1; d++) aligned = aligned && (t->shape[d] == 1 || t->stride[d] * size % 16 == 0);
    return aligned;
}

bool simt_rows_whole(const trine_call *call, int symbol) {
    const int64_t n = call->dim[symbol];
    if (n <= 0 || n > INT32_MAX - 65536 || n % 8 != 0) return false;
    for (int t = 0; t < call->plan->tensors; t++) {
        const trine_plan_tensor *tensor = &call->plan->tensor[t];
        if (tensor->dim[tensor->rank - 1].symbol == symbol && !simt_aligned(call, t)) return false;
    }
    return true;
}

simt_ahead simt_ahead_most(const trine_call *call, int tensor, int64_t bytes, int sectors) {
    const trine_tensor *t = &call->tensor[tensor];
    int64_t count = 1;
    for (int d = t->rank - 1; d >= 0; count *= t->shape[d], d--)
        if (t->shape[d] != 1 && t->stride[d] != count) return (simt_ahead){ 0 };
    const int64_t most = bytes / (int64_t)trine_dtype_size(t->dtype);
    return (simt_ahead){ t->data, (count < most ? count : most) * (int64_t)trine_dtype_size(t->dtype), sectors };
}
simt_ahead simt_ahead_of(const trine_call *call, int tensor) { return simt_ahead_most(call, tensor, SIMT_AHEAD, 1); }

simt_ahead_two simt_ahead_of_two(const trine_call *call, int first, int second) {
    simt_ahead_two ahead = { { simt_ahead_of(call, first), simt_ahead_of(call, second) } };
    for (int i = 0; i < 2; i++)
        if (ahead.of[i].bytes > SIMT_AHEAD / 2) ahead.of[i].bytes = SIMT_AHEAD / 2;
    return ahead;
}

simt_rows simt_rows_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (simt_rows){ 0 };
    return (simt_rows){ t->data, t->rank > 2 ? t->stride[0] : 0, t->rank > 1 ? t->stride[t->rank - 2] : 0 };
}

simt_scales simt_scales_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return simt_present(call, tensor) ? (simt_scales){ t->data, t->stride[0], t->stride[1] } : (simt_scales){ 0 };
}

simt_group simt_group_of(int64_t rows, int64_t n, int items, int count, const int *sizes) {
    int i = 0;
    while (i + 1 < count && sizes[i] * items < n) i++;
    const int size = sizes[i], threads = size <= 32 ? SIMT_THREADS : size;
    return (simt_group){ size, threads, simt_blocks(rows, threads / size) };
}

/* Elements of a thread; rows from which on rows are enough for small groups; and sizes of groups. */
enum { ROW_ITEMS = 32, ROW_ENOUGH = 512 };
static const int fine[] = { 8, 32, 64, 128, 256, 512, 1024 }, stream[] = { 8, 32, 128, 256, 512, 1024 };

static int sizes_of(simt_ladder ladder, int64_t rows, const int **sizes_out) {
    *sizes_out = ladder == SIMT_STREAM ? stream : fine;
    return ladder == SIMT_STREAM ? (rows < ROW_ENOUGH ? 6 : 4) : ladder == SIMT_TWO_ROWS ? 6 : 7;
}

simt_group simt_row_group(int64_t rows, int64_t n, simt_ladder ladder) {
    const int *sizes, count = sizes_of(ladder, rows, &sizes);
    return simt_group_of(rows, n, ROW_ITEMS, count, sizes);
}

void simt_row_edges(trine_kernel_edges *edges, int rows, int symbol, simt_ladder ladder) {
    const int *sizes, count = sizes_of(ladder, 0, &sizes);
    trine_kernel_edge(edges, symbol, SIMT_VECTOR);
    for (int i = 0; i < count; i++) trine_kernel_edge(edges, symbol, (int64_t)sizes[i] * ROW_ITEMS);
    if (ladder == SIMT_STREAM) trine_kernel_edge(edges, rows, ROW_ENOUGH);
}

trine_status simt_launch_rows(const trine_call *call, const char *step, int64_t rows, int symbol, simt_ladder ladder,
                              const void *params, size_t size) {
    const simt_group group = simt_row_group(rows, call->dim[symbol], ladder);
    const simt_function function = { .step = step,
                                     .ragged = !simt_rows_whole(call, symbol),
                                     .type = { call->type[SIMT_FIRST_TYPE] },
                                     .variant = group.size };
    return simt_launch(call, &function, group.blocks, group.threads, params, size);
}

void simt_columns_edges(trine_kernel_edges *edges, int rows, int symbol) {
    trine_kernel_edge(edges, rows, COLUMNS_LINES);
    trine_kernel_edge(edges, rows, COLUMNS_LEAST);
    trine_kernel_edge(edges, rows, (int64_t)COLUMNS_LEAST * COLUMNS_BLOCKS);
    trine_kernel_edge(edges, rows, (int64_t)COLUMNS_MOST * COLUMNS_BLOCKS);
    trine_kernel_edge(edges, symbol, SIMT_VECTOR);
    trine_kernel_edge(edges, symbol, COLUMNS_WIDTH);
}
